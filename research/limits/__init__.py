"""What may be spent, and how fast a provider may be asked. Numbers, SQLite and clocks; no HTTP, no models."""
