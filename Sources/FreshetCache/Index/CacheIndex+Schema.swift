/// The format of the index. `PRAGMA user_version` is the number of migration steps that a file has had.
///
/// A step that was released is never edited.
extension CacheIndex {
    /// The application ID in the file's header ("Frsh"): the database of another program is not taken for an index.
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
        // 2. Requests that count against budgets: requests that were made close together, from the first to the last of
        //    them.
        """
        CREATE TABLE requests (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            count INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX requests_by_pipeline ON requests(pipeline);
        """,
        // 3. Parts of snapshots that are composed of many responses.
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
        // 4. The parameters of pipelines that are set; a parameter with its default value has no row.
        """
        CREATE TABLE parameters (
            pipeline INTEGER NOT NULL REFERENCES pipelines(id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (pipeline, name)
        ) STRICT, WITHOUT ROWID;
        """,
        // 5. Whether the source had more content than was requested.
        """
        ALTER TABLE generations ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0;
        """,
        // 6. When the content of the last success stops being fresh, as its origin states.
        """
        ALTER TABLE pipelines ADD COLUMN expires INTEGER;
        """,
        // 7. The pages of parts that can be continued: their number, and the cursor of the next page or the token for
        //    changes, if there is one. The items are the last column, so that a query that does not need them does not
        //    read them.
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
        // 8. The history of generations, with the causes of their runs and the durations of the runs in nanoseconds;
        //    the digest of the origin's content if it differs from the copy; and the generation at which a pipeline is
        //    pinned.
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
        // 9. The digest of the content that the last check of the origin returned: the copy may have further pages, or
        //    be another generation.
        """
        ALTER TABLE pipelines ADD COLUMN check_digest BLOB;
        UPDATE pipelines SET check_digest = coalesce(origin_digest,
            (SELECT digest FROM generations g WHERE g.pipeline = pipelines.id AND g.number = pipelines.current));
        """,
        // 10. The content that a check rejected last, which is kept, with the validators of the origin; and the digests
        //     of rejected content that a user accepted.
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
        // 11. For each hook, the content of its last success, and the content and the result of the attempts since
        //     then.
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
        // 12. An index by age: the oldest content is removed first when space is needed.
        """
        CREATE INDEX generations_by_age ON generations(committed_at);
        """,
        // 13. Pipelines that keep several files: their file is the stamp. And the names of their former links,
        //     separated by slashes.
        """
        ALTER TABLE pipelines ADD COLUMN is_set INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE pipelines ADD COLUMN former_set TEXT;
        """,
        // 14. When the current generation was withdrawn from readers; and whether the last success of a hook, or its
        //     last attempt, was for a withdrawn generation.
        """
        ALTER TABLE pipelines ADD COLUMN withdrawn_at INTEGER;
        ALTER TABLE hooks ADD COLUMN told_withdrawn INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE hooks ADD COLUMN tried_withdrawn INTEGER NOT NULL DEFAULT 0;
        """,
        // 15. Earlier versions also kept dates as validators from responses that were too young for that: a later
        //     version of the content may have the same date. So each such content is requested unconditionally once.
        """
        DELETE FROM validators WHERE last_modified IS NOT NULL;
        UPDATE parts SET entity_tag = NULL, last_modified = NULL WHERE last_modified IS NOT NULL;
        UPDATE refused SET entity_tag = NULL, last_modified = NULL WHERE last_modified IS NOT NULL;
        """,
        // 16. The expiry time that the content of a generation itself states.
        """
        ALTER TABLE generations ADD COLUMN content_expires INTEGER;
        """,
        // 17. Plainer names. Rejected content gets another file name too, so content that was rejected before is
        //     dropped; the next run fetches it again.
        """
        DELETE FROM refused;
        ALTER TABLE refused RENAME TO rejected;
        ALTER TABLE rejected RENAME COLUMN refused_at TO rejected_at;
        ALTER TABLE hooks RENAME COLUMN told_number TO succeeded_number;
        ALTER TABLE hooks RENAME COLUMN told_digest TO succeeded_digest;
        ALTER TABLE hooks RENAME COLUMN told_withdrawn TO succeeded_withdrawn;
        """,
        // 18. The times of the causes of a run: for each cause the microseconds since 1970 of its first and its last
        //     firing, as `FIRST-LAST`, separated by spaces.
        """
        ALTER TABLE runs ADD COLUMN cause_times TEXT;
        """,
        // 19. The mirror that a run asked last, without user information and query; in the history, the mirror from
        //     which the content of a generation comes.
        """
        ALTER TABLE runs ADD COLUMN mirror TEXT;
        ALTER TABLE history ADD COLUMN mirror TEXT;
        """,
    ]

    /// The newest format that this version supports.
    static var knownVersion: Int64 { Int64(migrations.count) }
}
