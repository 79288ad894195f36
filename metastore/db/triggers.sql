-- Every trigger but those for release 0.2 (release_0_2.sql); what they call stands beside the stores. Those of the notification log are switched on where it is kept.

CREATE TRIGGER locks_released AFTER DELETE ON locks
    FOR EACH ROW WHEN (OLD.watched_by IS NOT NULL) EXECUTE FUNCTION metastore_lock_released();

CREATE TRIGGER partitions_wire BEFORE INSERT OR UPDATE ON partitions
    FOR EACH ROW EXECUTE FUNCTION set_partition_wire();
CREATE TRIGGER tables_wire BEFORE INSERT ON tables FOR EACH ROW EXECUTE FUNCTION set_table_wire();
CREATE TRIGGER tables_wire_again BEFORE UPDATE OF sd, partition_keys ON tables FOR EACH ROW
    WHEN (OLD.wire IS NULL OR OLD.sd <> NEW.sd OR OLD.partition_keys <> NEW.partition_keys)
    EXECUTE FUNCTION set_table_wire();
CREATE TRIGGER column_statistics_wire BEFORE INSERT OR UPDATE OF "column", type, data ON column_statistics
    FOR EACH ROW EXECUTE FUNCTION set_column_statistics_wire();

CREATE TRIGGER txns_opened AFTER INSERT ON txns REFERENCING NEW TABLE AS opened
    FOR EACH STATEMENT EXECUTE FUNCTION metastore_txns_opened();
CREATE TRIGGER txns_ended AFTER UPDATE ON txns REFERENCING OLD TABLE AS before NEW TABLE AS ended
    FOR EACH STATEMENT EXECUTE FUNCTION metastore_txns_ended();
CREATE TRIGGER write_ids_allocated AFTER INSERT ON txn_write_ids REFERENCING NEW TABLE AS allocated
    FOR EACH STATEMENT EXECUTE FUNCTION metastore_write_ids_allocated();
ALTER TABLE txns DISABLE TRIGGER txns_opened, DISABLE TRIGGER txns_ended;
ALTER TABLE txn_write_ids DISABLE TRIGGER write_ids_allocated;
