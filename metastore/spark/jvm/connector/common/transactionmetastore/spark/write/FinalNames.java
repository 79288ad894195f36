package transactionmetastore.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import transactionmetastore.spark.files.InPlaceUploads;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.table.TableShape;

/**
 * The final names of files that tasks upload; the planner chooses them beforehand. "inserts": the directories of the
 * statement ids from "statement" on; "file": the pattern of a file's name by its bucket.
 */
record FinalNames(TableShape table, int statement, List<String> inserts, String deletes, String file) implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Returns the names in the planner's answer to "write"; null if files are staged. */
    static FinalNames of(JsonNode answer, TableShape table, int statement) {
        if (!answer.isObject()) return null;
        List<String> inserts = new ArrayList<>();
        for (JsonNode name : answer.path("inserts")) inserts.add(name.asText());
        return new FinalNames(table, statement, inserts, answer.path("deletes").asText(), answer.path("file").asText());
    }

    String of(WrittenFile written) {
        String directory = written.isDelete() ? deletes : inserts.get(written.statement() - statement);
        List<?> values = written.key() == null ? null : Messages.list(written.key());
        return InPlaceUploads.target(table.location(), table.keys().fieldNames(), values, directory, file, written.bucket());
    }
}
