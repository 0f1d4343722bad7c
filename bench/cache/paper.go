package cache

// latencyPaper is what the paper's published results have of an application, in milliseconds: OpenWhisk and HashCache.
type latencyPaper struct{ mean, p99, keptMean, keptP99 float64 }

// suitePaper is what it has of a suite.
type suitePaper struct {
	served, openWhisk, faasCache float64 // requests in a second: HashCache, OpenWhisk, FaasCache
	hits                         float64 // table III
	target                       string  // of the throughput beside the cache off
}
