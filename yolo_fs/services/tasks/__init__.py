"""The claims of tasks, and the commit of one."""
