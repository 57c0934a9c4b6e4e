import FreshetModel

/// Starts candidates: empty files on the file system of the cache.
struct CandidateStore: Sendable {
    let context: CacheContext
    let ownership: FileOwnership
    let sets: FileSetStore
    let space: CacheSpace

    /// - Parameters:
    ///   - size: the expected number of bytes; nil if it is not known.
    ///   - isClaimed: the destination belongs to the pipeline, or the caller claims it before it publishes the content.
    ///   - source: the file of the cache that is copied; then the caller holds the pipeline's lock.
    func begin(
        _ destination: CacheDestination, expecting size: UInt64? = nil, isClaimed: Bool = false,
        copying source: String? = nil
    ) throws(CacheError) -> CandidateFile {
        try CacheName.check(destination.pipeline)
        try CacheName.check(destination.file)
        if !isClaimed { try ownership.claim(destination) }
        let token = context.names.make()
        let path = context.layout.candidate(token, of: destination.pipeline)
        let descriptor: Int32
        do throws(CacheError) {
            descriptor = try create(path, for: destination.pipeline)
        } catch {
            context.names.release(token)
            throw error
        }
        do throws(CacheError) {
            let spaceRequest = SpaceRequest(
                destination, holdsLock: source != nil, copying: source,
                makesDirectory: try !sets.has(source, of: destination.pipeline))
            try space.check(for: size ?? 0, spaceRequest)
            return CandidateFile(
                context: context, space: space, destination: destination, spaceRequest: spaceRequest, token: token,
                path: path, writer: CandidateWriter(descriptor: descriptor, hasher: try SHA256Hasher()))
        } catch {
            context.fileSystem.close(descriptor)
            try? context.fileSystem.unlink(path)
            context.names.release(token)
            throw error
        }
    }

    private func create(_ path: String, for pipeline: String) throws(CacheError) -> Int32 {
        do throws(SystemCallError) {
            return try context.fileSystem.createFile(path)
        } catch  where error.isMissing {
            return try context.onFiles { (files) throws(SystemCallError) in
                try context.makeDirectories(ofNew: pipeline, files)
                return try files.createFile(path)
            }
        } catch {
            throw context.cacheError(error)
        }
    }
}
