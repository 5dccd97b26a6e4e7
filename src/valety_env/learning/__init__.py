"""What the training scripts share; each script of `training/` reads top to bottom without it."""
