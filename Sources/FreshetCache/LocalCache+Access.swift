/// Who may read the content of a pipeline, where that was configured anew.
///
/// The copy is given its mode and group last: as long as it does not have them, something is left to do, and whoever looks
/// next does it again. Where a reader of several files can go besides, is closed with it, and given no further right: it is
/// content from when nobody else had one. So is what takes the place of a damaged copy. Generations themselves keep what they
/// had: nobody but the service comes to them, and what it gives away of them is what the copy's mode allows too.
extension LocalCache {
    /// What is about to be put into place has the mode and the group of its destination; no directory that is kept besides
    /// is open to others.
    ///
    /// - Parameter copy: what readers find until then; nil: nothing, or nothing whole.
    func keepAccess(_ destination: CacheDestination, beside copy: FileStatus?) throws(CacheError) {
        if let copy, copy.isRegularFile, destination.isMet(by: copy) { return }
        try onFiles { (files) throws(SystemCallError) in try self.setAccessOfSets(destination, nil, files) }
    }

    /// Takes from all directories of several files what a destination's mode does not give.
    ///
    /// - Parameter shown: the generation whose directory readers are led to, if that is to have the mode as a whole.
    func setAccessOfSets(
        _ destination: CacheDestination, _ shown: StoredContent?, _ files: any FileSystem
    ) throws(SystemCallError) {
        guard destination.isSet else { return }
        let sets = layout.sets(of: destination.pipeline)
        for entry in try files.list(sets) where StoredContent(name: entry.name) != nil {
            let directory = sets + "/" + entry.name
            guard let own = try files.status(directory), own.isDirectory else { continue }
            for file in try files.list(directory) {
                let path = directory + "/" + file.name
                // What somebody else has put there is not the cache's.
                guard let status = try files.status(path), status.isRegularFile, status.owner == own.owner else {
                    continue
                }
                var wanted = destination
                if entry.name != shown?.name { wanted.mode &= status.mode }
                try files.setAccess(of: path, status, to: wanted)
            }
        }
    }

    /// Older content that is about to take the place of a damaged copy is open to nobody to whom that was not.
    ///
    /// - Parameter current: what the copy was; nil: it is not known.
    func keepClosed(
        _ content: StoredContent, of pipeline: String, at file: String, _ current: StoredContent?
    ) throws(CacheError) {
        let stored = layout.generation(content, of: pipeline)
        let paths = [current.map { layout.generation($0, of: pipeline) }, layout.reader(file)].compactMap(\.self)
        try onFiles { (files) throws(SystemCallError) in
            for path in paths {
                guard let copy = try files.status(path), copy.isRegularFile else { continue }
                guard let status = try files.status(stored), status.identity.inode != copy.identity.inode else {
                    return
                }
                // Of another group nothing is known.
                let mode = status.mode & copy.mode & (status.group == copy.group ? 0o777 : 0o707)
                return try files.setAccess(
                    of: stored, status, to: CacheDestination(pipeline: pipeline, file: file, mode: mode))
            }
        }
    }
}

extension FileSystem {
    /// Gives a file another mode and group, if it does not have them.
    func setAccess(
        of path: String, _ status: FileStatus, to destination: CacheDestination
    ) throws(SystemCallError) {
        if destination.isMet(by: status) { return }
        let group = destination.group ?? status.group
        let descriptor = try openFile(path)
        defer { close(descriptor) }
        // What is taken away goes first: between the two calls nobody has a right that neither mode gives.
        try setMode(status.mode & destination.mode, of: descriptor, path: path)
        if status.group != group { try setGroup(group, of: descriptor, path: path) }
        try setMode(destination.mode, of: descriptor, path: path)
    }
}

extension CacheDestination {
    /// The file has its mode and group.
    func isMet(by status: FileStatus) -> Bool {
        status.mode == mode && status.group == group ?? status.group
    }
}
