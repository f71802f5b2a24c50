"""What the server does with connected agents: it takes their messages, notes their presence and resyncs them."""
