"""Thrift's side of each concept: a class per noun, a public method per RPC.

Every method has one shape::

    def get_table_req(self, _call: Call, request: ttypes.GetTableRequest) -> ttypes.GetTableResult:
        \"\"\"Return a table.\"\"\"
        name, wanted = table_name_of(...), ...                   # decode
        table = self._tables.get_table(name, wanted)             # call the service
        return ttypes.GetTableResult(table_to_thrift(table))     # encode

Rules: arguments have the IDL's types. Unused arguments begin with an underscore, the call as well. ``call.log`` adds
the ids to the line of a call that is slow or fails. Work of more than four statements is a function below the class, or
the service's. A coalesced method gets ``calls`` and answers a list; see `metastore.thrift_server.dispatch.call`.
"""
