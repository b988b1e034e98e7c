"""The files of .hydra in a run's folder: its configuration, Hydra's, and the command line's part.

Hydra itself would write them before it is known that the job runs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from buropt.folder import OVERRIDES


def keep_configuration(folder: Path, config: DictConfig, hydra: DictConfig) -> None:
    """Write them; those of a run that is resumed stay, since they say how it was started.

    Parameters
    ----------
    folder : Path
        The run's.
    config, hydra : DictConfig
        The run's configuration, and Hydra's with its key `hydra`.

    Raises
    ------
    OSError
        If they cannot be written; none is there then that was not before.
    """
    place = folder / ".hydra"
    if config.resume and (place / OVERRIDES).exists():
        return
    is_new = not place.exists()
    place.mkdir(exist_ok=True)
    try:
        for name, content in (
            ("config.yaml", config),
            ("hydra.yaml", OmegaConf.masked_copy(hydra, "hydra")),
            (OVERRIDES, hydra.hydra.overrides.task),  # the last, by which the others are there
        ):
            (place / name).write_text(OmegaConf.to_yaml(content), encoding="utf-8")
    except OSError:
        if is_new:
            shutil.rmtree(place, ignore_errors=True)
        raise
