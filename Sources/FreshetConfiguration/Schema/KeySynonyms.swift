import FreshetModel

/// Keys that users know from other programs, with the key of this format that does the same.
enum KeySynonyms {
    /// The replacement for a key that the format does not have.
    struct Advice {
        /// The other program's keys, in lower case and without `-` and `_`.
        let names: [String]
        /// The mappings in which it applies.
        let sections: Set<KeyCatalogue.Section>
        /// The key that does the same, with its parent keys; nil if the format needs none.
        let key: String?
        /// What the user has to know; nil if the example says everything.
        let note: String?
        /// A line of a pipeline's file with the key.
        let example: String?

        fileprivate init(
            _ names: String, in sections: Set<KeyCatalogue.Section> = KeySynonyms.common, _ key: String? = nil,
            note: String? = nil, _ example: String? = nil
        ) {
            self.names = names.split(separator: " ").map(String.init)
            self.sections = sections
            self.key = key
            self.note = note
            self.example = example
        }

        /// What to write instead.
        ///
        /// - Parameter place: where the key belongs if it is another file: `in a pipeline's own file, `.
        fileprivate func remedy(_ place: String) -> String {
            let instead = key.map { "\(place)use '\($0)'" }
            let line = example.map { key == nil ? "\(place)write \($0)" : $0 }
            return [instead.map { instead in line.map { "\(instead): \($0)" } ?? instead } ?? line, note]
                .compactMap(\.self).joined(separator: "; ")
        }
    }

    /// The error for a key, if users know it from other programs.
    static func error(forKey key: String, in section: KeyCatalogue.Section) -> ValueError? {
        guard key.utf8.count <= Suggestion.maximumLength else { return nil }
        let plain = key.lowercased().filter { $0 != "-" && $0 != "_" }
        guard !section.keys.contains(plain),
            let advice = all.first(where: { $0.sections.contains(section) && $0.names.contains(plain) })
        else { return nil }
        return ValueError(
            "unknown key \(key.quoted)",
            remedy: advice.remedy(section.isOfPipelines || advice.key == nil ? "" : "in a pipeline's own file, "))
    }

    /// Whether users write a secret as the value of a key of this name, which diagnostics must not show.
    static func mayHoldSecret(_ key: String) -> Bool {
        // Each key of each file is looked up here, and nearly all have another initial.
        guard let initial = key.utf8.first, key.utf8.count <= longestSecret,
            initial & 0xDF < UInt8(ascii: "A") || initial & 0xDF > UInt8(ascii: "Z")
                || secretInitials & 1 << (initial & 0x1F) != 0
        else { return false }
        // Most keys are words of small letters.
        if key.utf8.allSatisfy({ (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }) {
            return secrets.names.contains(key)
        }
        // Also `auth:` and `password `, after a colon or a space too many.
        let plain = key.lowercased().unicodeScalars.filter {
            ("a"..."z").contains($0) || ("0"..."9").contains($0) || $0.value >= 0x80 && $0 != "\u{A0}"
        }
        return secrets.names.contains(String(String.UnicodeScalarView(plain)))
    }

    /// Whether a word is a misspelt key of a secret, such as `pasword`: one of its letters is wrong, missing, too many or
    /// exchanged with its neighbour. A key of the format is not.
    static func isNearlySecret(_ word: String) -> Bool {
        guard word.utf8.count <= longestSecret, word.utf8.allSatisfy({ $0 < 0x80 }) else { return false }
        let plain = word.lowercased().utf8.filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "_") }
        guard plain.count >= shortestMisspelt, !KeyCatalogue.isKey(word) else { return false }
        let letters = Self.letters(of: plain)
        return secrets.names.contains { name in
            let name = Array(name.utf8)
            // A cheap comparison first: one error changes at most two letters.
            guard abs(name.count - plain.count) <= 1, (Self.letters(of: name) ^ letters).nonzeroBitCount <= 2 else {
                return false
            }
            return EditDistance.between(name, plain) <= 1
        }
    }

    /// A shorter word is near to too many others.
    private static let shortestMisspelt = 4

    /// A bit for each letter of a word in lower case.
    private static func letters(of word: [UInt8]) -> UInt32 { word.reduce(0) { $0 | 1 << UInt32($1 & 0x1F) } }

    /// Bytes of a key that is compared with the names, the longest of which has 14 letters. Comparing many combining
    /// characters is slow.
    private static let longestSecret = 64

    /// A bit for the initial of each name, counted from the character before `a` or `A`.
    private static let secretInitials: UInt32 = secrets.names.reduce(0) { bits, name in
        bits | name.utf8.prefix(1).reduce(0) { $0 | 1 << UInt32($1 & 0x1F) }
    }

    /// The mappings in which users write keys of the whole pipeline.
    static let common: Set<KeyCatalogue.Section> = [.pipeline, .source, .each, .refresh, .cache, .daemon]
    private static let sources: Set<KeyCatalogue.Section> = [.pipeline, .source, .each]

    private static let secrets = Advice(
        "auth authentication authorization authtoken token accesstoken bearer bearertoken basicauth username password "
            + "passwd pass passphrase pwd secret clientsecret secretkey accesskey privatekey apikey xapikey refreshtoken "
            + "login credentials",
        "source.credential",
        note: "the secret itself is a credential of the service (LoadCredential= in a drop-in of freshetd.service)",
        "source: {url: 'https://api.example.com/data', credential: api-token}")

    /// The first that fits counts.
    static let all: [Advice] = [
        secrets,
        Advice(
            "user", in: [.source, .each], "source.credential", note: "the credential contains user:password",
            "source: {url: 'https://api.example.com/data', credential: {name: api-login, as: basic}}"),
        // Where the data comes from.
        Advice(
            "uri href endpoint address link", in: sources, "source.url",
            "source: {url: 'https://example.com/data.json'}"),
        Advice(
            "url", in: [.pipeline, .refresh, .cache], "source.url", "source: {url: 'https://example.com/data.json'}"),
        Advice("path filename", in: [.source, .each], "source.file", "source: {file: /etc/hosts}"),
        Advice(
            "command cmd script run program shell", in: sources, "source.exec", "source: {exec: [/usr/bin/uname, -r]}"),
        Advice(
            "useragent accept acceptlanguage referer origin cookie cookies", in: sources, "source.headers",
            "source: {url: 'https://example.com/data', headers: {Accept: application/json}}"),
        Advice(
            "data payload postdata", in: sources, "source.body",
            "source: {url: 'https://example.com/search', method: POST, body: '{}'}"),
        Advice(
            "insecure verify tlsverify sslverify verifyssl skipverify insecureskipverify tls ssl cacert ca cafile "
                + "cabundle", "source.certificate-authority", note: "certificates are always verified",
            "source: {url: 'https://internal.example.com/x', certificate-authority: /etc/ssl/internal-ca.pem}"),
        Advice(
            "cert certificate clientcert tlscert", in: sources, "source.client-certificate",
            "source: {url: 'https://internal.example.com/x', client-certificate: machine.crt}"),
        Advice(
            "followredirects follow maxredirects location", in: sources, "source.redirects",
            "source: {url: 'https://example.com/data', redirects: same-origin}"),
        Advice(
            "proxy httpproxy httpsproxy noproxy",
            note: "set http_proxy, https_proxy and no_proxy in /etc/default/freshetd, and restart the service"),
        Advice(
            "etag lastmodified conditional ifnonematch ifmodifiedsince",
            note: "leave it out: Freshet sends the validators of the last answer"),
        Advice("jq filter map select mapping", in: sources, "transform", "transform: '.items'"),
        // When it runs.
        Advice(
            "interval period frequency cadence pollinterval refreshinterval updateinterval checkinterval poll",
            "refresh.every", "refresh: {every: 15min}"),
        Advice(
            "cron crontab schedule calendar oncalendar", "refresh.at",
            note: "the notation is that of systemd.time(7); 'refresh.every' has the time between checks",
            "refresh: {at: 'Mon..Fri 06:30'}"),
        Advice(
            "jitter randomizeddelay randomizeddelaysec randomdelaysec", "refresh.random-delay",
            "refresh: {every: 1h, random-delay: 5min}"),
        Advice(
            "timeout timeoutsec requesttimeout connecttimeout readtimeout maxtime", "refresh.deadline",
            "refresh: {deadline: 30s}"),
        Advice(
            "retries maxretries attempts maxattempts backoff retrydelay retryinterval", "refresh.retry",
            note: "Freshet retries until a run succeeds", "refresh: {retry: {from: 5s, to: 10min}}"),
        Advice("throttle cooldown ratelimit", "refresh.min-interval", "refresh: {min-interval: 1min}"),
        Advice("debounce", "refresh.quiet", "refresh: {quiet: 5s}"),
        Advice("watch watchfiles watchpaths", "refresh.files", "refresh: {files: [/etc/regions]}"),
        Advice("depends dependson requires", "refresh.after", "refresh: {after: [catalogue]}"),
        Advice("trigger triggers signals events", "refresh.on", "refresh: {on: [start, network]}"),
        // Where the copy goes.
        Advice(
            "path output outputfile outfile dest destination saveto filename", in: [.pipeline, .cache], "cache.file",
            note: "it is a name below /var/cache/freshet/current, without a directory", "cache: {file: data.json}"),
        Advice(
            "output outputfile outfile dest destination saveto", in: [.source, .each, .refresh], "cache.file",
            note: "it is a name below /var/cache/freshet/current, without a directory", "cache: {file: data.json}"),
        Advice(
            "owner chown gid uid user", in: [.pipeline, .cache, .refresh], "cache.group",
            note: "the copy always belongs to the service's user", "cache: {file: data.json, group: www-data}"),
        Advice("permissions perms chmod umask", "cache.mode", "cache: {file: data.json, mode: \"0640\"}"),
        Advice(
            "ttl expiry expires expire maxstale staleafter lifetime", "cache.max-age",
            note: "the time between checks is 'refresh.every'", "cache: {file: data.json, max-age: 1d}"),
        Advice(
            "history generations versions retention revisions backups", "cache.keep",
            "cache: {file: data.json, keep: 9}"),
        // What is checked, and what follows.
        Advice("validate validation assert", "check", "check: {jq: '.keys | length > 0'}"),
        Advice("checksum sha256sum digest hash", "check.sha256", "check: {sha256: 'https://example.com/SHA256SUMS'}"),
        Advice("maxsize sizelimit maxlength", "check.max-bytes", "check: {max-bytes: 8M}"),
        Advice("minsize minlength", "check.min-bytes", "check: {min-bytes: 1K}"),
        Advice("maxsize", in: [.check], "check.max-bytes", "check: {max-bytes: 8M}"),
        Advice("minsize", in: [.check], "check.min-bytes", "check: {min-bytes: 1K}"),
        Advice(
            "hook hooks notify onupdate onsuccess postupdate afterchange callback", "on-change",
            "on-change: [{exec: [/usr/local/bin/notify, data]}]"),
        Advice(
            "restart reload reloadservice restartservice unit service systemd", in: [.pipeline, .hook],
            "on-change.reload-unit", "on-change: {reload-unit: nginx.service}"),
        Advice(
            "command cmd script run program shell", in: [.hook], "on-change.exec",
            "on-change: {exec: [/usr/local/bin/notify, data]}"),
        // Keys without an equivalent.
        Advice("name id", in: [.pipeline], note: "leave it out: the name of the file is the name of the pipeline"),
        Advice(
            "enabled enable disabled disable", in: [.pipeline],
            note: "leave it out; 'freshetctl hold NAME' holds a pipeline"),
        Advice(
            "loglevel logging log verbose", in: [.pipeline, .daemon],
            note: "leave it out; 'freshetctl log-level debug' sets the level"),
    ]
}
