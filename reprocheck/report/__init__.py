"""How a study is told: terminal text, JSON, progress."""
