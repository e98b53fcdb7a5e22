"""The paper's evaluation again, with what was published beside it."""
