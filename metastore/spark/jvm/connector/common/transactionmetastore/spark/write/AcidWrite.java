package transactionmetastore.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.orc.OrcConf;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.RowLevelOperation.Command;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;
import transactionmetastore.spark.files.EventFile;
import transactionmetastore.spark.files.InPlaceUploads;
import transactionmetastore.spark.internals.ActiveSession;
import transactionmetastore.spark.internals.DeclaredTexts;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.stream.StreamAppend;
import transactionmetastore.spark.table.KeyText;
import transactionmetastore.spark.table.RowId;
import transactionmetastore.spark.table.TableDefinition;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.table.WriterFunction;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.TransactionalTable;
import transactionmetastore.spark.txn.WriteKind;
/**
 * A statement's write of a table. Tasks write files in staging, the planner chooses their names, and the driver renames
 * them; on S3 tasks upload them to names that the planner has chosen before. Only the transaction's commit makes them
 * visible.
 *
 * Rules kept here. All events of a (partition, bucket) go to the same task wherever these decide the file's name: for rows
 * that exist, and in tables with buckets. They have the order that a file of deletes must have. The write id is allocated
 * when the statement runs, not when it is planned. An UPDATE is a single record until a task makes both events of it.
 */
final class AcidWrite implements DeltaWrite, DeltaBatchWrite, RequiresDistributionAndOrdering {
    private static final String ROW_IDS = RowId.BUCKET.column();
    private static final int MOST_SPREADING = 8;

    private final TransactionalTable target;
    private final TableShape table;
    private final Command command;
    private final Overwriting overwriting;
    private final LogicalWriteInfo info;
    private Configuration settings;
    private final String zone;
    private final Publication publication;
    private AcidTransaction transaction;
    private RowRules rules;
    private int statement = -1;
    private String staging;
    private FinalNames inPlace;

    /**
     * Creates a write. "command": null for an INSERT; "overwriting": null if nothing is replaced; "info": null for a
     * TRUNCATE.
     */
    AcidWrite(TransactionalTable target, TableShape table, Command command, Overwriting overwriting, LogicalWriteInfo info) {
        this.info = info;
        this.target = target;
        this.table = table;
        this.command = command;
        this.overwriting = overwriting;
        this.settings = ActiveSession.hadoopSettings();
        OrcConf.COMPRESS.setString(settings, "ZLIB");  // Hive before 4 knows no other
        this.zone = ActiveSession.zone();
        this.publication = new Publication(settings, table);
    }

    @Override
    public String description() {
        return (overwriting != null ? "overwrite " : command == null ? "insert into " : command + " of ") + table.name();
    }

    @Override
    public DeltaBatchWrite toBatch() {
        return this;
    }

    /**
     * Returns a write of a streaming query's batches. Where Spark runs them in no transaction, as before 4.2, each gets its
     * own.
     */
    @Override
    public StreamingWrite toStreaming() {
        if (overwriting != null) {
            throw new AcidException("UNSUPPORTED", "A streaming query adds rows to " + table.name() + ": it has the output mode "
                + "append. One that replaces rows writes each batch in foreachBatch.");
        }
        TransactionalTable written = target.isInWriter() ? target
            : target.in(AcidTransaction.committingItself(target.planner(), description()));
        written.transaction().write(table.name(), WriteKind.INSERT, null);
        AcidWrite write = new AcidWrite(written, table, null, null, info);
        return new StreamAppend(table.name(), table.row(), info, written.transaction(), write, settings);
    }

    // -- where rows go and how they are ordered ------------------------------------------------------------------------

    @Override
    public Distribution requiredDistribution() {
        List<Expression> together = new ArrayList<>();
        if (command != null) {
            if (hasPartitions()) together.add(Expressions.column(RowId.PARTITION.column()));
            together.add(writer(WriterFunction.Purpose.ROUTE));
        } else if (table.buckets().count() > 0) {
            together.addAll(partitionColumns());
            together.add(WriterFunction.ofNewRows(table.buckets(), zone));
        }
        return together.isEmpty() ? Distributions.unspecified() : Distributions.clustered(together.toArray(new Expression[0]));
    }

    @Override
    public SortOrder[] requiredOrdering() {
        List<Expression> order = new ArrayList<>();
        List<SortOrder> sorted = new ArrayList<>();
        if (command == null) {
            order.addAll(partitionColumns());
            if (table.buckets().count() > 0) order.add(WriterFunction.ofNewRows(table.buckets(), zone));
            if (table.plain() != null) table.buckets().sort().forEach(by -> sorted.add(sorted(by)));
        } else {
            if (hasPartitions()) order.add(Expressions.column(RowId.PARTITION.column()));
            order.add(writer(WriterFunction.Purpose.ORDER));
            for (RowId id : List.of(RowId.WRITE_ID, RowId.BUCKET, RowId.ROW)) order.add(Expressions.column(id.column()));
        }
        Stream<SortOrder> first = order.stream().map(key -> Expressions.sort(key, SortDirection.ASCENDING));
        return Stream.concat(first, sorted.stream()).toArray(SortOrder[]::new);
    }

    /** Returns the order of SORTED BY, which only insert-only tables may have. */
    private static SortOrder sorted(TableDefinition.Sorted by) {
        return Expressions.sort(WriterFunction.reference(by.column()), by.ascends() ? SortDirection.ASCENDING : SortDirection.DESCENDING);
    }

    private Expression writer(WriterFunction.Purpose purpose) {
        if (command != Command.MERGE) return WriterFunction.ofRows(ROW_IDS);
        List<String> spreading = Stream.of(table.row().fields()).filter(field -> field.dataType() instanceof AtomicType)
            .map(StructField::name).limit(MOST_SPREADING).toList();
        return WriterFunction.ofChanges(purpose, ROW_IDS, table.buckets(), spreading, zone);
    }

    private boolean hasPartitions() {
        return table.keys().length() > 0;
    }

    private List<Expression> partitionColumns() {
        return Stream.of(table.keys().fields()).map(key -> {
            Expression column = WriterFunction.reference(key.name());
            boolean isText = key.dataType() instanceof StringType && DeclaredTexts.blanksUpTo(key) == 0;
            return isText ? Expressions.apply(KeyText.NAME, column) : column;
        }).toList();
    }

    // -- tasks ---------------------------------------------------------------------------------------------------------

    @Override
    public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
        boolean hasWriterIds = table.plain() == null && table.buckets().count() == 0;
        if (overwriting != null && hasWriterIds && info.numPartitions() > EventFile.MAX_WRITER_ID + 1) {
            throw new AcidException("InvalidOperationError", "INSERT OVERWRITE of " + table.name() + " in "
                + info.numPartitions() + " tasks: a base has room for the files of 4096. Coalesce the rows.");
        }
        int further = info.numPartitions() > 0 && hasWriterIds ? (info.numPartitions() - 1) / (EventFile.MAX_WRITER_ID + 1) : 0;
        JsonNode begun = begin(further);
        transaction.hasUsed(further);
        rules = RowRules.of(begun.path("rules"), table);
        PlainFiles plain = plainFiles();
        Broadcast<SerializableConfiguration> sent = SparkContext.getOrCreate().broadcast(
            new SerializableConfiguration(settings), ClassTag$.MODULE$.apply(SerializableConfiguration.class));
        TaskSettings how = new TaskSettings(table, staging, inPlace, begun.path("write_id").asLong(), statement, zone,
            command == null, command == Command.MERGE, rules, plain, () -> sent.value().value());
        return (partition, task) -> how.plain() == null
            ? new TaskWriter(how, partition, task) : new PlainTaskWriter(how, partition, task);
    }

    /** Returns the writer of an insert-only table's files, with its settings among ours; null for a full ACID table. */
    private PlainFiles plainFiles() {
        if (table.plain() == null) return null;
        try {
            Job job = Job.getInstance(settings);
            PlainFiles files = PlainFiles.of(SparkSession.active(), table, job);
            settings = job.getConfiguration();
            return files;
        } catch (IOException error) {
            throw new AcidException("WRITE_FAILED", table.name() + " cannot be written: " + error.getMessage(), error);
        }
    }

    /**
     * Takes the locks that are not held yet, and returns the planner's answer about the write. "further": statement ids
     * that tasks use too.
     */
    JsonNode begin(int further) {
        transaction = target.transaction();
        if (!transaction.mayWrite()) transaction = ownTransaction();
        statement = transaction.nextStatement();
        try {
            transaction.lock();
            Map<String, Object> how = new HashMap<>(Map.of("kind", kind()));
            how.put("overwrite", overwriting == null ? null : overwriting.argument(table));
            if (!target.isReplaced()) how.put("known", target.definition().known());
            if (new InPlaceUploads().isFor(table.location(), settings)) how.put("in_place", further + 1);
            JsonNode answer = call("write", how);
            inPlace = FinalNames.of(answer.path("in_place"), table, statement);
            staging = answer.path("staging").asText();
            transaction.hasWriteId(table.name(), answer.path("write_id").asLong());
            return answer;
        } catch (AcidException error) {
            if (transaction.commitsItself()) transaction.close();  // Spark aborts no write that has not begun
            throw error;
        } catch (IOException error) {
            if (transaction.commitsItself()) transaction.close();
            throw new AcidException("WRITE_FAILED", table.name() + " cannot be written: " + error.getMessage(), error);
        }
    }

    /**
     * Returns a transaction for a statement for which Spark has begun none, and that its analysis did not find. The other
     * tables that it reads then have a snapshot from before the locks. This is right for added rows; changed rows must be
     * read in the transaction that changes them.
     */
    private AcidTransaction ownTransaction() {
        if (command != null) {
            throw new AcidException("NO_TRANSACTION", command + " of " + table.name() + " needs a transaction of the statement, "
                + "and Spark has begun none: for what is no SQL it looks for the catalog in the settings of the session that is active in the thread, "
                + "which may be another than the DataFrame's. Run the statement by spark.sql, or set the catalog where Spark is started "
                + "(SparkSession.builder), for all sessions.");
        }
        AcidTransaction own = target.block() == null
            ? AcidTransaction.committingItself(target.planner(), description()) : target.block().statement(true);
        own.write(table.name(), WriteKind.valueOf(kind()), null);
        return own;
    }

    private String kind() {
        if (overwriting != null) return "INSERT_OVERWRITE";
        return command == null ? "INSERT" : command == Command.MERGE ? "UPDATE" : command.name();
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
        List<WrittenFile> files = new ArrayList<>();
        List<long[]> broken = new ArrayList<>();
        for (WriterCommitMessage message : messages) {
            if (!(message instanceof TaskWriter.Written task)) continue;
            files.addAll(task.files());
            broken.add(task.broken());
            if (task.refusal() != null) {
                throw new AcidException("InvalidOperationError", "A row cannot be stored in " + table.name() + ": " + task.refusal()
                    + ". Nothing was written.");
            }
        }
        if (rules != null) rules.require(table.name(), broken);
        publish(files);
    }

    /** Removes the tasks' files in staging, and aborts uploads. Published files are removed when the transaction is undone. */
    @Override
    public void abort(WriterCommitMessage[] messages) {
        for (WriterCommitMessage message : messages) {
            if (message instanceof TaskWriter.Written task) publication.has(task.files());
        }
        publication.abortUploads();
        removeStaging();
        if (transaction != null && transaction.commitsItself()) transaction.close();
    }

    // -- the end of the statement --------------------------------------------------------------------------------------

    private void publish(List<WrittenFile> files) {
        for (WrittenFile file : files) requireChangedOnce(file);
        if (overwriting != null) overwriting.require(table, files);
        Map<String, Object> arguments = new HashMap<>();
        arguments.put("overwrite", overwriting == null ? null : overwriting.argument(table));
        arguments.put("files", files.stream().map(WrittenFile::argument).toList());
        publication.has(files);
        transaction.whenUndone(publication::withdraw);
        JsonNode plan = call("publish", arguments);
        publication.requireSeen(plan, transaction);
        try {
            publication.publish(plan, inPlace != null, this::writeEmpty);
        } catch (AcidException failure) {
            requireOpen(failure);
            throw failure;
        }
        Map<String, Object> announced = new HashMap<>();
        announced.put("operation", operation());
        announced.put("keys", new TreeSet<>(files.stream().map(WrittenFile::key).filter(key -> key != null).toList()));
        announced.put("overwrite", arguments.get("overwrite"));
        call("announce", announced);
        removeStaging();
        transaction.wrote(table.name(), rows(files, false), rows(files, true), files.stream().mapToLong(WrittenFile::updates).sum());
        transaction.statementWritten();
    }

    /**
     * Throws the error that ended the transaction, if any: the Cleaner removes staged files of an aborted transaction, so
     * that is the true cause.
     */
    private void requireOpen(AcidException failure) {
        try {
            transaction.planner().call("heartbeat", Map.of("txn", transaction.id()));
        } catch (AcidException over) {
            if (!PlannerClient.saysThatItIsOver(over)) return;
            over.addSuppressed(failure);
            throw over;
        }
    }

    /** Writes a file without rows, for a place that an overwrite empties. */
    private void writeEmpty(Path path) throws IOException {
        if (table.plain() == null) {
            new EventFile(path, table.events(), settings, false).close();
            return;
        }
        File room = InPlaceUploads.room();  // Hive's classes leave a file with the row count beside it
        try {
            File made = new File(room, "empty");
            plainFiles().open(new Path(made.toURI()), settings).close();
            FileUtil.copy(made, path.getFileSystem(settings), path, true, settings);
        } finally {
            FileUtil.fullyDelete(room);
        }
    }

    private static long rows(List<WrittenFile> files, boolean deleted) {
        return files.stream().filter(file -> file.isDelete() == deleted).mapToLong(WrittenFile::rows).sum();
    }

    private String operation() {
        if (overwriting == null && command == null) return "INSERT";
        return command == Command.DELETE ? "DELETE" : "UPDATE";
    }

    private void requireChangedOnce(WrittenFile file) {
        if (!file.isDelete() || file.times() < 2) return;
        throw new AcidException("InvalidOperationError", command + ": " + file.times() + " source rows match the same row of "
            + table.name() + " (ROW__ID " + java.util.Arrays.toString(file.repeated()) + "). Make the source unique on the ON "
            + "condition.");
    }

    private void removeStaging() {
        if (staging == null || inPlace != null) return;
        try {
            Path place = new Path(staging);
            place.getFileSystem(settings).delete(place, true);
        } catch (IOException error) {
            // readers ignore the leftover, and the Cleaner removes it
        }
    }

    private JsonNode call(String name, Map<String, ?> more) {
        Map<String, Object> arguments = new HashMap<>(more);
        arguments.put("txn", transaction.id());
        arguments.put("table", table.name());
        arguments.put("statement", statement);
        return transaction.planner().call(name, arguments);
    }
}
