package transactionmetastore.spark.read;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import transactionmetastore.spark.plain.PlainParts;

/** The parts of files that a task reads. */
record AcidPartition(List<Split> splits) implements PlainParts {
    private static final long serialVersionUID = 1L;

    /** The stripes of a file that begin in "length" bytes from "start" on. */
    record Split(ScanPlan.DataFile file, long start, long length) implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    /** The parts of files whose rows all have the same key: see Groups. */
    record Keyed(AcidPartition partition, InternalRow partitionKey) implements PlainParts, HasPartitionKey {
        private static final long serialVersionUID = 1L;

        @Override
        public List<Part> parts() {
            return partition.parts();
        }
    }

    @Override
    public List<Part> parts() {
        return splits.stream().map(split -> new Part(
            split.file.path(), split.file.directory(), split.start, split.length, split.file.size())).toList();
    }

    /**
     * Returns the tasks, as Spark makes them of plain files: large files are cut, small files put together. A file counts
     * as "openCost" bytes larger than it is. "isSplitable": whether parts of a file can be read separately.
     */
    static List<AcidPartition> of(
            List<ScanPlan.DataFile> files, long largest, long openCost, int parallelism,
            Predicate<ScanPlan.DataFile> isSplitable) {
        long total = 0;
        for (ScanPlan.DataFile file : files) total += file.size() + openCost;
        long most = Math.min(largest, Math.max(openCost, total / Math.max(1, parallelism)));
        List<Split> splits = new ArrayList<>();
        for (ScanPlan.DataFile file : files) {
            long part = isSplitable.test(file) ? most : file.size();
            for (long start = 0; start < file.size(); start += part) {
                splits.add(new Split(file, start, Math.min(part, file.size() - start)));
            }
        }
        splits.sort(Comparator.comparingLong(Split::length).reversed());
        List<AcidPartition> partitions = new ArrayList<>();
        List<Split> current = new ArrayList<>();
        long size = 0;
        for (Split split : splits) {
            if (size + split.length > most && !current.isEmpty()) {
                partitions.add(new AcidPartition(List.copyOf(current)));
                current.clear();
                size = 0;
            }
            current.add(split);
            size += split.length + openCost;
        }
        if (!current.isEmpty()) partitions.add(new AcidPartition(List.copyOf(current)));
        return partitions;
    }
}
