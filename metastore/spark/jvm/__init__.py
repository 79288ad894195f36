"""The bridge to Spark's JVM: Java classes of ours, and Hadoop's file systems."""
