__all__ = ['ttypes', 'constants', 'MetastoreOperators']
