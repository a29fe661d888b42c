"""Tasks that Devs claim, and the commit of one."""
