"""What a run may spend, and whether it has."""

from __future__ import annotations

from yolo_fs.company.runs import Run


class Budget:
    """Limits of the money and of the tokens of a run."""

    def __init__(self, usd: float | None, tokens: int | None):
        """`usd`, `tokens`: what may be spent; None for no limit."""
        self.usd, self.tokens = usd, tokens
        self._most_usd, self._most_tokens = usd, tokens

    def is_used_up(self, run: Run) -> bool:
        """Return whether a run has spent what it may."""
        return (self._most_usd is not None and run.cost_usd >= self._most_usd) or (
            self._most_tokens is not None and run.tokens >= self._most_tokens
        )

    def extend(self, run: Run) -> None:
        """Allow the original amount once more, beyond what the run has spent."""
        if self.usd is not None:
            self._most_usd = self.usd + run.cost_usd
        if self.tokens is not None:
            self._most_tokens = self.tokens + run.tokens
