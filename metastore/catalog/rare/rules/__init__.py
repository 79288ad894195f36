"""Rules of rare concepts, pure, over objects as JSON with Thrift's field names; `objects` has what all share."""
