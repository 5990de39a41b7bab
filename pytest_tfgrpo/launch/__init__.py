"""One run from start to report, without pytest: what surrounds the engine, and the thread that it runs on."""
