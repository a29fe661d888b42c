"""The only access to git: nothing else imports GitPython or runs git commands."""
