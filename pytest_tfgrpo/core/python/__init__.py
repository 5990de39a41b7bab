"""What Python itself lacks or does slowly: classes, threads, imports, the clock."""
