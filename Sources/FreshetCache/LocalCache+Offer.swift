import Synchronization

extension LocalCache {
    /// The current generation, if the reader's file holds it.
    ///
    /// The common case costs a look into the index and one `lstat`. Only a difference takes the pipeline's lock, and so
    /// waits for a commit that is under way: between its rename and the index's transaction the two differ.
    func offer(of pipeline: String) throws(CacheError) -> IndexedOffer? {
        if let known = try withIndex({ (index) throws(SQLiteError) in try index.offer(of: pipeline) }) {
            return try verified(known)
        }
        return try verifiedOffer(of: pipeline)
    }

    /// The same for an offer that was just read from the index.
    func verified(_ known: IndexedOffer) throws(CacheError) -> IndexedOffer? {
        if try status(of: known)?.identity == known.generation.identity, try isSetShown(known) { return known }
        return try verifiedOffer(of: known.pipeline.name)
    }

    private func verifiedOffer(of pipeline: String) throws(CacheError) -> IndexedOffer? {
        try entry(pipeline).state.withLock { (state) throws(CacheError) in
            try verifiedOffer(of: pipeline, &state)
        }
    }

    /// The same, for a caller that holds the pipeline's lock.
    func verifiedOffer(
        of pipeline: String, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedOffer? {
        let known = try intactOffer(of: pipeline, &state)
        guard let known else { return nil }
        do throws(CacheError) {
            // Of several files the stamp decides; what else belongs to it is made from it.
            try agreeSet(with: known)
        } catch .noBundle {
            // It is nothing that the pipeline could offer, until its next commit.
            return nil
        }
        return known
    }

    private func intactOffer(
        of pipeline: String, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedOffer? {
        if state.isSuspect {
            try onFiles { (files) throws(SystemCallError) in try self.makeDirectories(for: pipeline, files) }
            _ = try reconcile(pipeline)
            state.isSuspect = false
        }
        guard var known = try withIndex({ (index) throws(SQLiteError) in try index.offer(of: pipeline) }),
            let status = try status(of: known), status.isRegularFile
        else { return nil }
        known.status = status
        if status.identity == known.generation.identity { return known }
        if status.identity == state.refuted { return nil }
        guard try fileSystem.digest(of: layout.reader(known.file)) == known.generation.content.digest else {
            state.refuted = status.identity
            return nil
        }
        known.generation.identity = status.identity
        let (generation, id) = (known.generation, known.pipeline.id)
        try withIndex { (index) throws(SQLiteError) in try index.update(generation, of: id) }
        return known
    }

    private func status(of offer: IndexedOffer) throws(CacheError) -> FileStatus? {
        try onFiles { (files) throws(SystemCallError) in try files.status(layout.reader(offer.file)) }
    }
}
