/// Who may read the content of a pipeline, where that was configured anew.
///
/// The copy is given its mode and group last: as long as it does not have them, something is left to do, and whoever looks
/// next does it again. What is kept besides may become the copy, or is where a reader of several files can go: what is taken
/// from the copy is taken from it too. It is given no further right: it is content from when nobody else had one.
extension LocalCache {
    /// What is about to be put into place has the mode and the group of its destination; nothing that is kept besides is open
    /// to others.
    ///
    /// - Parameter copy: what readers find until then; nil: nothing, or nothing whole.
    func keepAccess(_ destination: CacheDestination, beside copy: FileStatus?) throws(CacheError) {
        if let copy, copy.isRegularFile, destination.isMet(by: copy) { return }
        try onFiles { (files) throws(SystemCallError) in
            try self.setAccessOfOthers(than: copy, nil, destination, files)
        }
    }

    /// Takes from all generations that are kept, from what a check refused, and from all directories of several files what a
    /// destination's mode does not give, but not from the copy.
    ///
    /// - Parameter shown: the generation whose directory readers are led to, if that is to have the mode as a whole.
    func setAccessOfOthers(
        than copy: FileStatus?, _ shown: StoredContent?, _ destination: CacheDestination, _ files: any FileSystem
    ) throws(SystemCallError) {
        let generations = layout.generations(of: destination.pipeline)
        try setAccess(in: generations, destination, files) { entry in
            entry.inode != copy?.identity.inode
                && (StoredContent(name: entry.name) != nil || CacheLayout.refusedDigest(entry.name) != nil)
        }
        guard destination.isSet else { return }
        let sets = layout.sets(of: destination.pipeline)
        for entry in try files.list(sets) where StoredContent(name: entry.name) != nil {
            try setAccess(in: sets + "/" + entry.name, gives: entry.name == shown?.name, destination, files) { _ in true
            }
        }
    }

    private func setAccess(
        in directory: String, gives: Bool = false, _ destination: CacheDestination, _ files: any FileSystem,
        _ isOwn: (DirectoryEntry) -> Bool
    ) throws(SystemCallError) {
        guard let own = try files.status(directory), own.isDirectory else { return }
        for entry in try files.list(directory) where isOwn(entry) {
            let path = directory + "/" + entry.name
            // What somebody else has put there is not the cache's.
            guard let status = try files.status(path), status.isRegularFile, status.owner == own.owner else { continue }
            var wanted = destination
            if !gives { wanted.mode &= status.mode }
            try files.setAccess(of: path, status, to: wanted)
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
