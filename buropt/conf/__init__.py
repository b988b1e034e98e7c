"""Hydra's configurations: `config.yaml` and one folder for each choice."""
