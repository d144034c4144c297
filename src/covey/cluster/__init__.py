"""Several servers on one store: nodes, and which of them owns which workspace. Imported only where that is used."""
