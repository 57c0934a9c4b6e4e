import FreshetModel

/// The rules for each column of the index. A test compares them with the schema: a new column needs a rule here.
extension IndexValidation {
    static let tables: [(table: String, rules: [Rule])] = [
        (
            "pipelines",
            [
                Rule("id", .anything), Rule("name", .text(CacheLimits.nameBytes)),
                .optional("file", .text(CacheLimits.nameBytes)), .optional("current", .number),
                // The next generation needs a new number.
                Rule("last_number", .lastNumber, .set("0")),
                .optional("last_attempt", .time), .optional("last_success", .time), .optional("retry_after", .time),
                .optional("expires", .time), .optional("origin_digest", .digest), .optional("pin_number", .number),
                .optional("pin_digest", .digest), .optional("pinned_at", .time), .optional("check_digest", .digest),
                // StartRepair restores it from the files.
                Rule("is_set", .flag, .set("0")),
                .optional("former_set", .text((CacheLimits.nameBytes + 1) * CacheLimits.formerLinks)),
                .optional("withdrawn_at", .time),
            ]
        ),
        (
            "generations",
            [
                Rule("pipeline", .owner), Rule("number", .number), Rule("digest", .digest),
                // StartRepair restores it from the files.
                Rule("size", .size, .set("0")),
                Rule("committed_at", .time, .set("max(0, modified)")), .optional("run", .number),
                Rule("inode", .anything, .set("0")), Rule("modified", .anything, .set("0")),
                Rule("changed", .anything, .set("0")), Rule("truncated", .flag, .set("0")),
                // Without validators the next response is complete, and states the expiry time again.
                .optional("content_expires", .time),
            ]
        ),
        (
            "validators",
            [
                Rule("id", .anything), Rule("pipeline", .owner), Rule("url", .text(CacheLimits.validatorBytes)),
                Rule("digest", .digest), .optional("entity_tag", .header), .optional("last_modified", .header),
            ]
        ),
        (
            "runs",
            [
                Rule("pipeline", .owner), Rule("number", .number), Rule("causes", .text(CacheLimits.runTextBytes)),
                Rule("started", .time), Rule("finished", .time),
                Rule("outcome", .oneOf(RunOutcome.allCases.map(\.rawValue))),
                .optional("error", .text(CacheLimits.runTextBytes)), .optional("generation", .number),
                .optional("cause_times", .text(CacheLimits.runTextBytes)),
                .optional("mirror", .text(CacheLimits.runTextBytes)),
            ]
        ),
        (
            "state",
            [
                Rule("pipeline", .owner), Rule("key", .text(CacheLimits.stateKeyBytes)), Rule("value", .blob),
            ]
        ),
        (
            "requests",
            [Rule("pipeline", .owner), Rule("first", .time), Rule("last", .time), Rule("count", .count)]
        ),
        (
            "parts",
            [
                Rule("pipeline", .owner), Rule("name", .text(IndexBounds.textBytes)),
                Rule("binding", .text(IndexBounds.textBytes)), .optional("entity_tag", .header),
                .optional("last_modified", .header), Rule("value", .blob),
            ]
        ),
        (
            "pages",
            [
                Rule("pipeline", .owner), Rule("name", .text(IndexBounds.textBytes)), Rule("count", .count),
                .optional("next", .text(IndexBounds.textBytes)), .optional("token", .text(IndexBounds.textBytes)),
                Rule("items", .blob),
            ]
        ),
        (
            "parameters",
            [
                Rule("pipeline", .owner), Rule("name", .text(IndexBounds.textBytes)),
                Rule("value", .text(IndexBounds.textBytes)),
            ]
        ),
        (
            "history",
            [
                Rule("pipeline", .owner), Rule("number", .number), Rule("digest", .digest), Rule("size", .size),
                Rule("committed_at", .time), Rule("truncated", .flag, .set("0")),
                .optional("causes", .text(CacheLimits.runTextBytes)), .optional("duration", .time),
                .optional("mirror", .text(CacheLimits.runTextBytes)),
            ]
        ),
        (
            "rejected",
            [
                Rule("pipeline", .owner), Rule("digest", .digest), Rule("size", .size), Rule("rejected_at", .time),
                Rule("reason", .text(CacheLimits.runTextBytes)), Rule("truncated", .flag, .set("0")),
                .optional("expires", .time), .optional("url", .text(CacheLimits.validatorBytes)),
                .optional("entity_tag", .header), .optional("last_modified", .header),
            ]
        ),
        ("accepted", [Rule("pipeline", .owner), Rule("digest", .digest)]),
        (
            "hooks",
            [
                Rule("pipeline", .owner), Rule("hook", .text(IndexBounds.textBytes)),
                .optional("succeeded_number", .number),
                .optional("succeeded_digest", .digest), .optional("tried_number", .number),
                .optional("tried_digest", .digest), Rule("attempts", .count, .set("0")),
                .optional("failing_since", .time), .optional("error", .text(CacheLimits.runTextBytes)),
                Rule("succeeded_withdrawn", .flag, .set("0")), Rule("tried_withdrawn", .flag, .set("0")),
            ]
        ),
    ]
}

/// Rules for values that depend on each other.
enum IndexConsistency {
    static let lastNumber = "pipelines.last_number"
    /// Each statement, with the column or table that it resets (`place`), and the table that it reads: nothing happens if
    /// that is empty.
    static let rules: [(place: String, table: String, statement: String)] = [
        // The next generation gets a number that no generation had before.
        (
            lastNumber, "pipelines",
            """
            UPDATE pipelines SET last_number = (SELECT max(h.number) FROM history h WHERE h.pipeline = id)
            WHERE last_number < (SELECT max(h.number) FROM history h WHERE h.pipeline = id)
            """
        ),
        (
            lastNumber, "pipelines",
            """
            UPDATE pipelines SET last_number = (SELECT max(g.number) FROM generations g WHERE g.pipeline = id)
            WHERE last_number < (SELECT max(g.number) FROM generations g WHERE g.pipeline = id)
            """
        ),
        // A pin is a number and a digest. The digest decides: it identifies the content that the user pinned.
        (
            "pipelines.pin_number", "pipelines",
            """
            UPDATE pipelines SET pin_number =
                (SELECT max(g.number) FROM generations g WHERE g.pipeline = id AND g.digest = pin_digest)
            WHERE pin_digest IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM generations g
                    WHERE g.pipeline = id AND g.number IS pin_number AND g.digest = pin_digest)
                AND EXISTS (SELECT 1 FROM generations g WHERE g.pipeline = id AND g.digest = pin_digest)
            """
        ),
        (
            "the pin of pipelines", "pipelines",
            """
            UPDATE pipelines SET pin_number = NULL, pin_digest = NULL, pinned_at = NULL
            WHERE (pin_number IS NULL) <> (pin_digest IS NULL)
            """
        ),
        // A copy is withdrawn after it was published, except if the clock was set back. Before the daemon is ready, it
        // checks again whether the copy is too old.
        (
            "pipelines.withdrawn_at", "pipelines",
            """
            UPDATE pipelines SET withdrawn_at = NULL
            WHERE withdrawn_at IS NOT NULL AND withdrawn_at + 86400000000000 <
                (SELECT g.committed_at FROM generations g WHERE g.pipeline = id AND g.number = current)
            """
        ),
        ("requests", "requests", "DELETE FROM requests WHERE first > last"),
        (
            "pages", "pages",
            "DELETE FROM pages WHERE NOT EXISTS (SELECT 1 FROM parts t WHERE t.pipeline = pages.pipeline AND t.name = pages.name)"
        ),
    ]
}
