package transactionmetastore.spark.extension;

import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Product;

/** Access to parts of a plan's nodes by name: versions of Spark differ in the parts and in their order. */
final class Nodes {
    private Nodes() {}

    /** Returns the position of a part by its name; -1 if nodes of this Spark have none. */
    static int place(Product node, String name) {
        for (int place = 0; place < node.productArity(); ++place) {
            if (node.productElementName(place).equals(name)) return place;
        }
        return -1;
    }

    /** Copies a node with another value for the part at a position. */
    @SuppressWarnings("unchecked")  // a copy is of the same class
    static <N extends TreeNode<?> & Product> N with(N node, int place, Object part) {
        Object[] parts = new Object[node.productArity()];
        for (int other = 0; other < parts.length; ++other) parts[other] = node.productElement(other);
        parts[place] = part;
        return (N) node.makeCopy(parts);
    }
}
