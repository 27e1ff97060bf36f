"""Languages that kernels are written in: parsing, stable loci, byte-exact edits, static checks."""
