"""Export: what a run has paid for, as rows for programs that train weights; the train split alone."""
