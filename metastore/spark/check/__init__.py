"""What is wrong with a table's files. Reads them; needs no Spark session."""
