/// The index's format. `PRAGMA user_version` says how many of the steps a file has had.
///
/// A step that was released is never edited.
extension CacheIndex {
    /// In the file's header ("Frsh"): another program's database is not taken for ours.
    static let applicationID: Int64 = 0x4672_7368

    static let migrations: [String] = [
        // 1. Times are nanoseconds since 1970, digests 32 bytes, inodes the bit pattern of an unsigned number.
        """
        CREATE TABLE pipelines (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            file TEXT UNIQUE,
            current INTEGER,
            last_number INTEGER NOT NULL DEFAULT 0,
            last_attempt INTEGER,
            last_success INTEGER,
            retry_after INTEGER
        ) STRICT;
        CREATE TABLE generations (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            digest BLOB NOT NULL,
            size INTEGER NOT NULL,
            committed_at INTEGER NOT NULL,
            run INTEGER,
            inode INTEGER NOT NULL,
            modified INTEGER NOT NULL,
            changed INTEGER NOT NULL,
            PRIMARY KEY (pipeline, number)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE validators (
            id INTEGER PRIMARY KEY,
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            url TEXT NOT NULL,
            digest BLOB NOT NULL,
            entity_tag TEXT,
            last_modified TEXT,
            UNIQUE (pipeline, url, digest)
        ) STRICT;
        CREATE TABLE runs (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            causes TEXT NOT NULL,
            started INTEGER NOT NULL,
            finished INTEGER NOT NULL,
            outcome TEXT NOT NULL,
            error TEXT,
            generation INTEGER,
            PRIMARY KEY (pipeline, number)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE state (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            key TEXT NOT NULL,
            value BLOB NOT NULL,
            PRIMARY KEY (pipeline, key)
        ) STRICT, WITHOUT ROWID;
        """,
        // 2. What was spent of budgets: requests that were made close together, from the first to the last of them.
        """
        CREATE TABLE requests (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            count INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX requests_by_pipeline ON requests(pipeline);
        """,
        // 3. Parts of the snapshots of pipelines that are put together from many answers.
        """
        CREATE TABLE parts (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            binding TEXT NOT NULL,
            entity_tag TEXT,
            last_modified TEXT,
            value BLOB NOT NULL,
            PRIMARY KEY (pipeline, name)
        ) STRICT;
        """,
        // 4. What is set of pipelines' parameters; a parameter with its default is not here.
        """
        CREATE TABLE parameters (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (pipeline, name)
        ) STRICT, WITHOUT ROWID;
        """,
        // 5. Whether the source had more than was asked for.
        """
        ALTER TABLE generations ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0;
        """,
        // 6. When the content of the last success stops being fresh by its origin's word.
        """
        ALTER TABLE pipelines ADD COLUMN expires INTEGER;
        """,
        // 7. The pages of parts that may be continued: how many, and by what the next one is asked for, or what has
        // changed, if there is such a thing. The items stand last, so that nobody reads them who does not ask for them.
        """
        CREATE TABLE pages (
            pipeline INTEGER NOT NULL,
            name TEXT NOT NULL,
            count INTEGER NOT NULL,
            next TEXT,
            token TEXT,
            items BLOB NOT NULL,
            PRIMARY KEY (pipeline, name),
            FOREIGN KEY (pipeline, name) REFERENCES parts(pipeline, name) ON DELETE CASCADE
        ) STRICT;
        """,
        // 8. What generations there were, with the causes of their runs and how long these took, in nanoseconds; the digest
        // of what the origin has where that is not the copy; and the generation that a pipeline is pinned at.
        """
        CREATE TABLE history (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            digest BLOB NOT NULL,
            size INTEGER NOT NULL,
            committed_at INTEGER NOT NULL,
            truncated INTEGER NOT NULL,
            causes TEXT,
            duration INTEGER,
            PRIMARY KEY (pipeline, number)
        ) STRICT, WITHOUT ROWID;
        INSERT OR IGNORE INTO history
            SELECT g.pipeline, g.number, g.digest, g.size, g.committed_at, g.truncated, r.causes, r.finished - r.started
            FROM generations g
            LEFT JOIN runs r ON r.pipeline = g.pipeline AND r.generation = g.number AND r.outcome = 'changed';
        ALTER TABLE pipelines ADD COLUMN origin_digest BLOB;
        ALTER TABLE pipelines ADD COLUMN pin_number INTEGER;
        ALTER TABLE pipelines ADD COLUMN pin_digest BLOB;
        ALTER TABLE pipelines ADD COLUMN pinned_at INTEGER;
        """,
        // 9. The digest of what the last check of the origin brought: the copy may have further pages, or be another one.
        """
        ALTER TABLE pipelines ADD COLUMN check_digest BLOB;
        UPDATE pipelines SET check_digest = coalesce(origin_digest,
            (SELECT digest FROM generations g WHERE g.pipeline = pipelines.id AND g.number = pipelines.current));
        """,
        // 10. What a check refused last, kept aside for a look, with what the origin said about it; and the digests of what
        // the operator accepted of that.
        """
        CREATE TABLE refused (
            pipeline INTEGER PRIMARY KEY REFERENCES pipelines(id) ON DELETE CASCADE,
            digest BLOB NOT NULL,
            size INTEGER NOT NULL,
            refused_at INTEGER NOT NULL,
            reason TEXT NOT NULL,
            truncated INTEGER NOT NULL,
            expires INTEGER,
            url TEXT,
            entity_tag TEXT,
            last_modified TEXT
        ) STRICT;
        CREATE TABLE accepted (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            digest BLOB NOT NULL,
            PRIMARY KEY (pipeline, digest)
        ) STRICT, WITHOUT ROWID;
        """,
        // 11. What hooks were told of last, what the attempts since then were for, and what became of them.
        """
        CREATE TABLE hooks (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            hook TEXT NOT NULL,
            told_number INTEGER,
            told_digest BLOB,
            tried_number INTEGER,
            tried_digest BLOB,
            attempts INTEGER NOT NULL DEFAULT 0,
            failing_since INTEGER,
            error TEXT,
            PRIMARY KEY (pipeline, hook)
        ) STRICT, WITHOUT ROWID;
        """,
        // 12. What is the oldest content, to go when there is no room.
        """
        CREATE INDEX generations_by_age ON generations(committed_at);
        """,
        // 13. Pipelines of several files: their file is the stamp. The names of the links that one had before, with slashes
        // between them.
        """
        ALTER TABLE pipelines ADD COLUMN is_set INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE pipelines ADD COLUMN former_set TEXT;
        """,
        // 14. Since when the current generation is withdrawn from readers; and that hooks were told of it, or an attempt was
        // for it, withdrawn.
        """
        ALTER TABLE pipelines ADD COLUMN withdrawn_at INTEGER;
        ALTER TABLE hooks ADD COLUMN told_withdrawn INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE hooks ADD COLUMN tried_withdrawn INTEGER NOT NULL DEFAULT 0;
        """,
        // 15. Validators with a date were kept also from answers that were too young for them: a later version may have the
        // same ones. Each is asked for anew once.
        """
        DELETE FROM validators WHERE last_modified IS NOT NULL;
        UPDATE parts SET entity_tag = NULL, last_modified = NULL WHERE last_modified IS NOT NULL;
        UPDATE refused SET entity_tag = NULL, last_modified = NULL WHERE last_modified IS NOT NULL;
        """,
        // 16. When the content of a generation expires by what the content itself states.
        """
        ALTER TABLE generations ADD COLUMN content_expires INTEGER;
        """,
    ]

    /// The newest format that this version knows.
    static var knownVersion: Int64 { Int64(migrations.count) }
}
