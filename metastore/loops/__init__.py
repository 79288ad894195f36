"""The loops: each a ``tick()`` that returns a report; only ``scheduler`` knows about intervals and stopping."""
