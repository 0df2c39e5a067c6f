package main

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queued-mq/queued/store"
)

// storeCollector shows Pebble's own counters.
type storeCollector struct{ store *store.Store }

var (
	pebbleCompactions    = desc("pebble_compactions_total", "Compactions, by kind, since the store was opened.", "kind")
	pebbleCompactFailed  = desc("pebble_compactions_failed_total", "Compactions that hit an error, since the store was opened.")
	pebbleCompactSeconds = desc("pebble_compaction_seconds_total", "Time spent in compactions, since the store was opened.")
	pebbleCompacting     = desc("pebble_compactions_in_progress", "Compactions under way.")
	pebbleDebt           = desc("pebble_compaction_debt_bytes", "Octets to be compacted until the store is in shape.")
	pebbleFlushes        = desc("pebble_flushes_total", "Flushes of memtables, since the store was opened.")
	pebbleFlushedBytes   = desc("pebble_flushed_bytes_total", "Octets written by flushes, since the store was opened.")
	pebbleCompactedBytes = desc("pebble_compacted_bytes_total", "Octets written by compactions, since the store was opened.")
	pebbleMemtableBytes  = desc("pebble_memtable_bytes", "Octets of memtables.")
	pebbleMemtables      = desc("pebble_memtables", "Memtables.")
	pebbleWALBytes       = desc("pebble_wal_bytes", "Octets of the write-ahead log on disk.")
	pebbleWALFiles       = desc("pebble_wal_files", "Live files of the write-ahead log.")
	pebbleWALIn          = desc("pebble_wal_written_bytes_total", "Octets written to the write-ahead log, since the store was opened.")
	pebbleLevelFiles     = desc("pebble_level_files", "Tables of a level.", "level")
	pebbleLevelBytes     = desc("pebble_level_bytes", "Octets of the tables of a level.", "level")
	pebbleL0Sublevels    = desc("pebble_l0_sublevels", "Sublevels of level 0: tables that a read may have to look into.")
	pebbleReadAmp        = desc("pebble_read_amplification", "Tables that a read may have to look into.")
	pebbleTombstones     = desc("pebble_tombstones", "Deletions that no compaction has removed yet, about.")
	pebbleGarbage        = desc("pebble_garbage_bytes", "Octets that compaction could give back, about.")
	pebbleDiskBytes      = desc("pebble_disk_usage_bytes", "Octets of all files of the store.")
	pebbleBlobBytes      = desc("pebble_blob_bytes", "Octets of files of large values.")
	pebbleCacheBytes     = desc("pebble_block_cache_bytes", "Octets in the block cache.")
	pebbleCacheHits      = desc("pebble_block_cache_hits_total", "Blocks found in the cache, since the store was opened.")
	pebbleCacheMisses    = desc("pebble_block_cache_misses_total", "Blocks read from disk, since the store was opened.")
	pebbleIterators      = desc("pebble_table_iterators", "Open iterators over tables.")
)

// Describe is part of prometheus.Collector.
func (c storeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		pebbleCompactions, pebbleCompactFailed, pebbleCompactSeconds, pebbleCompacting, pebbleDebt, pebbleFlushes,
		pebbleFlushedBytes, pebbleCompactedBytes, pebbleMemtableBytes, pebbleMemtables, pebbleWALBytes, pebbleWALFiles,
		pebbleWALIn, pebbleLevelFiles, pebbleLevelBytes, pebbleL0Sublevels, pebbleReadAmp, pebbleTombstones,
		pebbleGarbage, pebbleDiskBytes, pebbleBlobBytes, pebbleCacheBytes, pebbleCacheHits, pebbleCacheMisses,
		pebbleIterators,
	} {
		out <- d
	}
}

// Collect is part of prometheus.Collector.
func (c storeCollector) Collect(out chan<- prometheus.Metric) {
	m := c.store.Metrics()
	for kind, n := range map[string]int64{
		"default": m.Compact.DefaultCount, "delete_only": m.Compact.DeleteOnlyCount, "elision_only": m.Compact.ElisionOnlyCount,
		"copy": m.Compact.CopyCount, "move": m.Compact.MoveCount, "read": m.Compact.ReadCount,
		"tombstone_density": m.Compact.TombstoneDensityCount, "rewrite": m.Compact.RewriteCount,
		"multi_level": m.Compact.MultiLevelCount, "blob_file_rewrite": m.Compact.BlobFileRewriteCount,
	} {
		counter(out, pebbleCompactions, float64(n), kind)
	}
	counter(out, pebbleCompactFailed, float64(m.Compact.FailedCount))
	counter(out, pebbleCompactSeconds, m.Compact.Duration.Seconds())
	gauge(out, pebbleCompacting, float64(m.Compact.NumInProgress))
	gauge(out, pebbleDebt, float64(m.Compact.EstimatedDebt))
	counter(out, pebbleFlushes, float64(m.Flush.Count))
	var flushed, compacted uint64
	for level := range m.Levels {
		l := &m.Levels[level]
		flushed += l.TableBytesFlushed + l.BlobBytesFlushed
		compacted += l.TableBytesCompacted + l.BlobBytesCompacted
		name := strconv.Itoa(level)
		gauge(out, pebbleLevelFiles, float64(l.TablesCount), name)
		gauge(out, pebbleLevelBytes, float64(l.TablesSize), name)
	}
	counter(out, pebbleFlushedBytes, float64(flushed))
	counter(out, pebbleCompactedBytes, float64(compacted))
	gauge(out, pebbleL0Sublevels, float64(m.Levels[0].Sublevels))
	gauge(out, pebbleMemtableBytes, float64(m.MemTable.Size))
	gauge(out, pebbleMemtables, float64(m.MemTable.Count))
	gauge(out, pebbleWALBytes, float64(m.WAL.PhysicalSize+m.WAL.ObsoletePhysicalSize))
	gauge(out, pebbleWALFiles, float64(m.WAL.Files))
	counter(out, pebbleWALIn, float64(m.WAL.BytesWritten))
	gauge(out, pebbleReadAmp, float64(m.ReadAmp()))
	gauge(out, pebbleTombstones, float64(m.Keys.TombstoneCount))
	gauge(out, pebbleGarbage, float64(m.Table.Garbage.PointDeletionsBytesEstimate+m.Table.Garbage.RangeDeletionsBytesEstimate))
	gauge(out, pebbleDiskBytes, float64(m.DiskSpaceUsage()))
	gauge(out, pebbleBlobBytes, float64(m.BlobFiles.LiveSize))
	gauge(out, pebbleCacheBytes, float64(m.BlockCache.Size))
	counter(out, pebbleCacheHits, float64(m.BlockCache.Hits))
	counter(out, pebbleCacheMisses, float64(m.BlockCache.Misses))
	gauge(out, pebbleIterators, float64(m.TableIters))
}
