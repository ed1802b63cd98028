"""The fresh interpreter's side: started by path, standard library only, Python 3.9 and later.

Nothing imports this package; in a trial it goes by the name `_reprocheck_worker`, and this file is not run.
"""
