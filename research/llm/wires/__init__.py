"""The dialects that providers speak, as pure translations: no sockets, no clocks, no keys."""
