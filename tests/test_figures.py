"""Publication figures, and the means and bands that they show."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from sweeps import config_of, records, write_run

from buropt.palette import DARK, LIGHT
from buropt.plot.__main__ import main
from buropt.results import read_runs
from buropt.series import curve_of, group, mean_of, select, top_of


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two methods, each with a compressor of its own, two k, three seeds; one run diverges."""
    number = 0
    for name, rate in (("gd", 0.5), ("marina", 0.8)):
        for k in (1, 5):
            for seed in range(3):
                history = records(rate + 0.01 * seed + 0.02 * k, n=20 + seed, bits=64 * k)
                status = "budget:iterations"
                if (name, k, seed) == ("marina", 5, 2):
                    history, status = records(3.0, n=12), "non_finite"
                choices = {"optimizer": name, "compressor": f"{name}_own"}
                config = config_of(seed=seed, k=k)
                folder = tmp_path / "sweep" / str(number)
                write_run(folder, config, history, status=status, choices=choices)
                number += 1
    return tmp_path / "sweep"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were saved."""
    figures: list[Figure] = []
    save = Figure.savefig

    def remember(figure: Figure, *arguments: object, **more: object) -> None:
        figures.append(figure)
        save(figure, *arguments, **more)

    monkeypatch.setattr(Figure, "savefig", remember)
    return figures


def test_series_differ_in_more_than_the_seed(sweep: Path) -> None:
    found = group(read_runs(sweep))
    labels = [series.label for series in found]
    assert labels == ["gd, k=1", "gd, k=5", "marina, k=1", "marina, k=5"]
    assert [len(series.runs) for series in found] == [3] * 4
    (single,) = group(read_runs(sweep / "0"))
    assert single.label == "gd"


def test_labels_are_short_while_that_is_enough(tmp_path: Path) -> None:
    for number, step in enumerate((0.123456789, 2.0, 1e-7 / 3)):
        write_run(tmp_path / str(number), config_of(step=step), records(n=2))
    labels = [series.label for series in group(read_runs(tmp_path))]
    assert labels == ["step=0.1235", "step=2", "step=3.333e-08"]
    write_run(tmp_path / "3", config_of(step=0.123456788), records(n=2))
    labels = [series.label for series in group(read_runs(tmp_path))]
    assert labels[0] == "step=0.123456789"
    for number in range(4):
        (tmp_path / str(number) / "result.json").unlink()
        (tmp_path / str(number) / ".hydra" / "hydra.yaml").unlink()
    assert [series.label for series in group(read_runs(tmp_path))] == ["all runs"]


def test_the_mean_is_geometric_over_what_all_have_reached(sweep: Path) -> None:
    runs = group(read_runs(sweep))[0].runs
    curve = mean_of(runs, "iteration", "f_gap")
    assert curve is not None
    assert curve.x.tolist() == list(range(20))
    rates = [0.52, 0.53, 0.54]
    np.testing.assert_allclose(curve.y, [np.prod(rates) ** (k / 3) for k in range(20)])
    np.testing.assert_allclose(curve.low, [0.52**k for k in range(20)])
    np.testing.assert_allclose(curve.high, [0.54**k for k in range(20)])


def test_linear_axes_and_deviations(sweep: Path) -> None:
    runs = group(read_runs(sweep))[0].runs
    curve = mean_of(runs, "bits_up", "f_gap", log=False, band="deviation")
    assert curve is not None
    values = np.array([[rate**k for k in range(20)] for rate in (0.52, 0.53, 0.54)])
    np.testing.assert_allclose(curve.y, values.mean(axis=0))
    np.testing.assert_allclose(curve.high, values.mean(axis=0) + values.std(axis=0, ddof=1))
    plain = mean_of(runs, "bits_up", "f_gap", band="none")
    assert plain is not None
    assert plain.low is None


def test_runs_are_interpolated_in_the_logarithm(tmp_path: Path) -> None:
    for seed, step in ((0, 1), (1, 2)):
        write_run(tmp_path / str(seed), config_of(seed=seed), records(0.5, n=21)[::step])
    curve = mean_of(read_runs(tmp_path), "seconds", "grad_norm_sq")
    assert curve is not None
    np.testing.assert_allclose(curve.y, [0.25**k for k in range(21)], rtol=1e-12)


def test_points_that_a_logarithm_cannot_show(tmp_path: Path) -> None:
    history = records(n=4)
    history[2] = history[2]._replace(f_gap=-1e-17)
    history[3] = history[3]._replace(f_gap=None)
    write_run(tmp_path / "0", config_of(), history)
    (run,) = read_runs(tmp_path)
    assert curve_of(run, "iteration", "f_gap").x.tolist() == [0, 1]
    assert curve_of(run, "iteration", "f_gap", log=False).x.tolist() == [0, 1, 2]


def test_diverged_runs(sweep: Path) -> None:
    runs = read_runs(sweep)
    assert [run.name for run in runs if run.diverged] == ["11"]
    assert top_of(runs, "iteration", "f_gap") == 10.0
    growing = runs[11].columns | {"f": runs[11].columns["f"] * 1e300}
    assert type(runs[0])("0", "budget:iterations", "", {}, growing, {}).diverged


def test_filters(sweep: Path) -> None:
    runs = read_runs(sweep)
    chosen = select(runs, {"compressor.k": ["5.0"], "seed": ["0", "2"], "optimizer": ["gd"]})
    assert [run.name for run in chosen] == ["3", "5"]
    assert len(select(runs, {"status": ["non_finite"]})) == 1


def test_a_figure(sweep: Path, drawn: list[Figure], tmp_path: Path) -> None:
    out = tmp_path / "fig.pdf"
    words = ["--x", "bits", "--y", "grad_norm_sq", "--hue", "optimizer", "--title", "Two methods"]
    assert main([str(sweep), *words, "--out", str(out)]) == 0
    (axes,) = drawn[0].axes
    assert axes.get_xlabel() == "uplink bits per worker"
    assert axes.get_ylabel() == r"$\|\nabla f(x)\|^2$"
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    _, labels = axes.get_legend_handles_labels()
    assert labels == ["gd, k=1", "gd, k=5", "marina, k=1", "marina, k=5 (1 of 3 diverged)"]
    means = axes.lines[:3] + axes.lines[3:4]
    assert [line.get_color() for line in means] == [LIGHT[0], LIGHT[0], LIGHT[1], LIGHT[1]]
    assert len({str(line._dash_pattern) for line in means[:2]}) == 2
    assert len({line.get_marker() for line in means}) == 4
    assert len(axes.collections) == 4  # the bands
    assert axes.lines[4].get_marker() == "x"
    assert axes.get_ylim()[1] < 1e3
    content = out.read_bytes()
    assert b"/FontFile2" in content  # TrueType, embedded
    assert b"/Type3" not in content
    again = tmp_path / "again.pdf"
    main([str(sweep), *words, "--out", str(again)])
    assert again.read_bytes() == content


def test_panels_scales_and_formats(sweep: Path, drawn: list[Figure], tmp_path: Path) -> None:
    words = [
        "--y",
        "gap",
        "distance",
        "--x",
        "seconds",
        "--logx",
        "--size",
        "2",
        "1.5",
        "--dpi",
        "80",
    ]
    for name in ("fig.png", "fig.svg"):
        assert main([str(sweep), *words, "--out", str(tmp_path / name)]) == 0
    left, right = drawn[0].axes
    assert left.get_xscale() == "log"
    assert (left.get_ylabel(), right.get_ylabel()) == ("$f(x) - f^*$", r"$\|x - x^*\|^2$")
    assert left.get_xlabel() == "time of the method [s]"
    width, height = drawn[0].get_size_inches()
    assert width == 4
    assert 1.5 < height < 2.5  # the legend is below
    assert main([str(sweep), "--liny", "--no-legend", "--out", str(tmp_path / "lin.png")]) == 0
    assert drawn[2].axes[0].get_yscale() == "linear"
    assert drawn[2].legends == []
    assert drawn[2].axes[0].get_legend() is None


def test_a_panel_for_each_value(sweep: Path, drawn: list[Figure], tmp_path: Path) -> None:
    words = ["--panels", "compressor.k", "--size", "2", "1.5", "--out", str(tmp_path / "fig.png")]
    assert main([str(sweep), *words]) == 0
    left, right = drawn[0].axes
    assert (left.get_title(), right.get_title()) == ("k = 1", "k = 5")
    assert left.get_legend_handles_labels()[1] == ["gd", "marina"]
    colours = [[line.get_color() for line in axes.lines[:2]] for axes in (left, right)]
    assert colours == [[LIGHT[0], LIGHT[1]]] * 2
    width, height = drawn[0].get_size_inches()
    assert width == 4
    assert 1.5 < height < 2.5  # the legend is below
    assert main([str(sweep), *words, "--dpi", "100"]) == 0
    assert int.from_bytes((tmp_path / "fig.png").read_bytes()[16:20], "big") == 400
    (legend,) = drawn[0].legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == ["gd", "marina", "marina (1 of 3 diverged)"]
    assert main([str(sweep), *words, "--panels", "seed", "--y", "gap", "grad"]) == 0
    assert len(drawn[2].axes) == 6
    assert main([str(sweep), *words, "--panels", "seed"]) == 0
    assert len(drawn[3].axes) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--panels", "optimiser"], "optimiser is not a setting of these runs"),
        (["--y", "grad_nrom_sq"], "y grad_nrom_sq is not a column: did you mean grad_norm_sq"),
        (["--x", "bit"], "x bit is not a column: did you mean bits"),
        (["--hue", "optimiser"], "optimiser is not a setting of these runs: did you mean optimiz"),
        (["--filter", "compresor.k=1"], "compresor.k is not a setting .* mean compressor.k"),
        (["--filter", "optimizer=sgd"], "no run has optimizer=sgd: there are gd, marina"),
        (["--filter", "optimizer"], "--filter optimizer: write key=value"),
        (["--out", "fig.gif"], "fig.gif must end in one of .pdf, .png"),
    ],
)
def test_mistakes(
    words: list[str], message: str, sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(sweep), "--out", "fig.pdf", *words]) == 2
    error = capsys.readouterr().err
    assert re.match(f"buropt.plot: {message}", error)
    assert error.count("\n") == 1


def test_nothing_to_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = [record._replace(f_gap=None) for record in records(n=3)]
    write_run(tmp_path / "0", config_of(), unknown)
    assert main([str(tmp_path), "--y", "gap", "--out", str(tmp_path / "fig.png")]) == 2
    assert "no run has f_gap known and positive over bits_up" in capsys.readouterr().err
    assert main([str(tmp_path / "none"), "--out", "fig.png"]) == 2
    assert "is not a folder" in capsys.readouterr().err


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_colours_stand_out_from_their_background() -> None:
    """A contrast of 2.9 at least: nearly that which WCAG asks of graphics, which is 3."""
    assert all(1.05 / (luminance(colour) + 0.05) > 2.9 for colour in LIGHT)
    dark = luminance("#14171C")
    assert all((luminance(colour) + 0.05) / (dark + 0.05) > 5 for colour in DARK)


# Linear light as seen without one kind of cones (Machado et al. 2009, severity 1).
BLINDNESS = {
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "none": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_are_told_apart_without_red_or_green(kind: str, palette: tuple[str, ...]) -> None:
    def seen(colour: str) -> np.ndarray:
        c = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        lms = np.cbrt(
            np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
            @ np.clip(np.array(BLINDNESS[kind]) @ linear, 0, 1)
        )
        oklab = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
        return np.array(oklab) @ lms

    points = [seen(colour) for colour in palette[:6]]
    distances = [np.linalg.norm(p - q) for k, p in enumerate(points) for q in points[:k]]
    assert min(distances) > 0.1
