"""What joins the environments to one framework each; every module needs its own framework."""
