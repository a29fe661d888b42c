"""Three departments take one phase from the design to the sign-off."""
