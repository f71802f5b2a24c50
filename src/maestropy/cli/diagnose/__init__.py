"""`maestro diagnose`: collect an archive, analyse it offline, compare two."""
