"""One module for each table or figure of the paper, measured anew."""
