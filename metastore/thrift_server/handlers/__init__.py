"""One class per concept; each public method is one RPC: decode, call the service, encode."""
