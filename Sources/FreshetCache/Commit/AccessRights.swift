/// Updates the mode and group of a pipeline's files after the configuration changed them.
///
/// The copy is changed last: as long as it does not have the configured mode and group, the change is incomplete, and
/// the next call repeats it. Other directories of several files that readers can enter are restricted in the same way,
/// but get no additional permission: their content is from a time when other users had no access. The same holds for
/// older content that takes the place of a damaged copy. Generations keep their modes: only the service can reach them,
/// and it gives their content only to readers that the mode of the copy allows too.
struct AccessRights: Sendable {
    let context: CacheContext
    let published: PublishedFiles
    let sets: FileSetStore

    /// Restricts all directories that are kept for former generations, before a candidate that has the mode and group
    /// of its destination is published.
    ///
    /// - Parameter copy: the published file until then; nil: there is none, or it is damaged.
    func keep(_ destination: CacheDestination, beside copy: FileStatus?) throws(CacheError) {
        if let copy, copy.isRegularFile, destination.isMet(by: copy) { return }
        try context.onFiles { (files) throws(SystemCallError) in try setOfSets(destination, nil, files) }
    }

    /// Removes permissions that the destination's mode does not have from all directories of several files.
    ///
    /// - Parameter shown: the directory that readers see, if it must get exactly the mode: see
    ///   ``FileSetStore/name(of:in:)``.
    func setOfSets(
        _ destination: CacheDestination, _ shown: StoredContent?, _ files: any FileSystem
    ) throws(SystemCallError) {
        guard destination.isSet else { return }
        let sets = context.layout.sets(of: destination.pipeline)
        for entry in try files.list(sets) where StoredContent(name: entry.name) != nil {
            let directory = sets + "/" + entry.name
            guard let own = try files.status(directory), own.isDirectory else { continue }
            for file in try files.list(directory) {
                let path = directory + "/" + file.name
                // Files of another owner do not belong to the cache.
                guard let status = try files.status(path), status.isRegularFile, status.owner == own.owner else {
                    continue
                }
                var wanted = destination
                if entry.name != shown?.name { wanted.mode &= status.mode }
                try files.setAccess(of: path, status, to: wanted)
            }
        }
    }

    /// Restricts older content that is about to take the place of a damaged copy, so that only readers of the copy can
    /// read it.
    ///
    /// - Parameter current: the content of the damaged copy; nil if it is not known.
    func keepClosed(
        _ content: StoredContent, of pipeline: String, at file: String, _ current: StoredContent?
    ) throws(CacheError) {
        let stored = context.layout.generation(content, of: pipeline)
        let paths = [current.map { context.layout.generation($0, of: pipeline) }, context.layout.reader(file)]
            .compactMap(\.self)
        try context.onFiles { (files) throws(SystemCallError) in
            for path in paths {
                guard let copy = try files.status(path), copy.isRegularFile else { continue }
                guard let status = try files.status(stored), status.identity.inode != copy.identity.inode else {
                    return
                }
                // If the group differs, its members may not have had access.
                let mode = status.mode & copy.mode & (status.group == copy.group ? 0o777 : 0o707)
                return try files.setAccess(
                    of: stored, status, to: CacheDestination(pipeline: pipeline, file: file, mode: mode))
            }
        }
    }

    /// Returns the new identity of the published file: a change of the mode changes the time of the status change.
    func set(of publication: IndexedPublication, to destination: CacheDestination) throws(CacheError)
        -> FileIdentity
    {
        let reader = published.path(of: publication)
        let content = publication.generation.content
        let set = destination.isSet ? try sets.name(of: content, in: destination.pipeline) : content
        return try context.onFiles { (files) throws(SystemCallError) in
            guard let status = try files.status(reader) else { return publication.generation.identity }
            if destination.isMet(by: status) { return status.identity }
            try setOfSets(destination, set, files)
            try files.setAccess(of: reader, status, to: destination)
            return try files.status(reader)?.identity ?? status.identity
        }
    }
}

extension FileSystem {
    /// Sets the mode and group of a file, if they differ.
    func setAccess(
        of path: String, _ status: FileStatus, to destination: CacheDestination
    ) throws(SystemCallError) {
        if destination.isMet(by: status) { return }
        let group = destination.group ?? status.group
        let descriptor = try openFile(path)
        defer { close(descriptor) }
        // Permissions are removed first: between the two calls, no user has a permission that neither mode gives.
        try setMode(status.mode & destination.mode, of: descriptor, path: path)
        if status.group != group { try setGroup(group, of: descriptor, path: path) }
        try setMode(destination.mode, of: descriptor, path: path)
    }
}

extension CacheDestination {
    /// Whether the file has the mode and group of the destination.
    func isMet(by status: FileStatus) -> Bool {
        status.mode == mode && status.group == group ?? status.group
    }
}
