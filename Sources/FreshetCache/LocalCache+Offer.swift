import Synchronization

extension LocalCache {
    /// The current generation, if the reader's file holds it. One that is withdrawn is not offered.
    ///
    /// The common case costs a look into the index and one `lstat`. Only a difference takes the pipeline's lock, and so
    /// waits for a commit that is under way: between its rename and the index's transaction the two differ.
    func offer(of pipeline: String) throws(CacheError) -> IndexedPublication? {
        if let known = try withIndex({ (index) throws(SQLiteError) in try index.offer(of: pipeline) }) {
            return try verified(known)
        }
        return try verifiedOffer(of: pipeline)
    }

    /// The same for an offer that was just read from the index.
    func verified(_ known: IndexedPublication) throws(CacheError) -> IndexedPublication? {
        if known.isWithdrawn {
            // What a withdrawal that failed has left is mended by the next who asks.
            guard isSuspect(known.pipeline.name) else { return nil }
        } else if try status(of: known)?.identity == known.generation.identity, try isSetShown(known) {
            return known
        }
        return try verifiedOffer(of: known.pipeline.name)
    }

    private func verifiedOffer(of pipeline: String) throws(CacheError) -> IndexedPublication? {
        try entry(pipeline).state.withLock { (state) throws(CacheError) in
            try verifiedOffer(of: pipeline, &state)
        }
    }

    /// The same, for a caller that holds the pipeline's lock.
    func verifiedOffer(
        of pipeline: String, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        guard let known = try keptOffer(of: pipeline, &state), !known.isWithdrawn else { return nil }
        return known
    }

    // MARK: What is kept

    /// What is offered, or was before it was withdrawn, if that is whole: requests are conditional by it, and new content is
    /// compared with it.
    func keptOffer(of pipeline: String) throws(CacheError) -> IndexedPublication? {
        let known = try withIndex { (index) throws(SQLiteError) in try index.offer(of: pipeline) }
        return if let known { try kept(known) } else { try verifiedOffer(of: pipeline) }
    }

    /// The same for an offer that was just read from the index.
    func kept(_ known: IndexedPublication) throws(CacheError) -> IndexedPublication? {
        guard known.isWithdrawn else { return try verified(known) }
        let pipeline = known.pipeline.name
        if try status(of: known)?.identity == known.generation.identity, !isSuspect(pipeline) { return known }
        return try entry(pipeline).state.withLock { (state) throws(CacheError) in
            try keptOffer(of: pipeline, &state)
        }
    }

    /// The same, for a caller that holds the pipeline's lock.
    func keptOffer(
        of pipeline: String, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        let known = try intactOffer(of: pipeline, &state)
        guard let known else { return nil }
        do throws(CacheError) {
            // Of several files the stamp decides; what else belongs to it is made from it.
            if !known.isWithdrawn { try agreeSet(with: known) }
        } catch .noBundle {
            // It is nothing that the pipeline could offer, until its next commit.
            return nil
        }
        return known
    }

    /// The file that has the content: the reader's, or, if that is not there, the generation's own.
    func place(of offer: IndexedPublication) -> String {
        offer.isWithdrawn
            ? layout.generation(offer.generation.content, of: offer.pipeline.name) : layout.reader(offer.file)
    }

    private func intactOffer(
        of pipeline: String, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        let epoch = indexEpoch.load(ordering: .acquiring)
        if state.isSuspect || state.epoch != epoch {
            try onFiles { (files) throws(SystemCallError) in try self.makeDirectories(for: pipeline, files) }
            _ = try reconcile(pipeline)
            (state.isSuspect, state.epoch) = (false, epoch)
        }
        guard var known = try withIndex({ (index) throws(SQLiteError) in try index.offer(of: pipeline) }),
            let status = try status(of: known), status.isRegularFile
        else { return nil }
        known.status = status
        if status.identity == known.generation.identity { return known }
        if status.identity == state.refuted { return nil }
        guard try fileSystem.digest(of: place(of: known)) == known.generation.content.digest else {
            state.refuted = status.identity
            return nil
        }
        known.generation.identity = status.identity
        let (generation, id) = (known.generation, known.pipeline.id)
        try withIndex { (index) throws(SQLiteError) in try index.update(generation, of: id) }
        return known
    }

    private func status(of offer: IndexedPublication) throws(CacheError) -> FileStatus? {
        try onFiles { (files) throws(SystemCallError) in try files.status(self.place(of: offer)) }
    }
}
