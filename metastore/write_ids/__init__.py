"""Write ids: the numbers by which the tables' files are told apart, and who may see which."""
