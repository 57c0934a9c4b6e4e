import FreshetModel
import FreshetNATS
import Testing

@testable import FreshetFleet

private func record(_ number: UInt64 = 7, content: UInt8 = 1) throws -> FleetRecord {
    FleetRecord(
        fleet: "prod", pipeline: "jwks", fingerprint: try digest(9), number: number, digest: try digest(content),
        size: 1_234, checkedAt: WallTime(microseconds: 1_795_000_000_000_001), madeBy: "ams-3")
}

private func subject() throws -> FleetSubject {
    FleetSubject(fleet: "prod", pipeline: "jwks", fingerprint: try digest(9))
}

private func publishers(_ index: Int = 0) throws -> Set<NKeyPublicKey> {
    [try NKeyPublicKey(try seed(index).publicKey)]
}

@Suite("The record of a fleet") struct RecordTests {
    @Test("a record with everything is read as it was written")
    func everything() throws {
        var whole = try record()
        whole.pipeline = "ä \"quoted\" \\ name"
        whole.validators = Validators(entityTag: #"W/"a""#, lastModified: "Thu, 26 Nov 2026 15:00:00 GMT")
        (whole.answeredDemand, whole.members) = (12, 10_000)
        var rollOut = FleetRecord.RollOut(
            share: 10_000, since: WallTime(seconds: 1_795_000_000), before: whole.fingerprint, sizeBefore: 7,
            numberBefore: 6)
        (rollOut.isHalted, rollOut.order) = (true, 9)
        whole.rollOut = rollOut
        let text = whole.text
        #expect(try FleetRecord(text: text) == whole)
        // One line, so that it fits in a header.
        #expect(text.allSatisfy { $0 >= 0x20 })
        let least = try record()
        #expect(try FleetRecord(text: least.text) == least)
    }

    @Test("a text that is not a record is rejected with the member that is wrong")
    func malformed() throws {
        let text = String(decoding: try record().text, as: UTF8.self)
        func error(_ old: String, _ new: String) throws -> RecordFormatError? {
            #expect(text.contains(old))
            return #expect(throws: RecordFormatError.self) {
                _ = try FleetRecord(text: Array(text.replacing(old, with: new).utf8))
            }
        }
        #expect(try error("{", "[") == .notJSON)
        #expect(try error("\"size\"", "\"number\"") == .notJSON)
        #expect(try error("\"version\":1", "\"version\":2") == .newerVersion(2))
        #expect(try error("\"number\":7", "\"number\":0") == .member("number"))
        #expect(try error("\"number\":7", "\"number\":-7") == .member("number"))
        #expect(try error("\"number\":7", "\"number\":7.5") == .member("number"))
        #expect(try error("\"number\":7", "\"number\":18446744073709551616") == .member("number"))
        #expect(try error("\"size\":1234", "\"size\":9223372036854775808") == .member("size"))
        #expect(try error("\"size\":1234", "\"size\":\"1234\"") == .member("size"))
        #expect(try error("0101", "010g") == .member("digest"))
        #expect(try error("ams-3", "") == .member("made-by"))
        #expect(try error("ams-3", "ams\\u001b[2J") == .member("made-by"))
        #expect(try error("1795000000000001", "9223372036854775807") == .member("checked-at"))
        #expect(try error("\"members\":1", "\"members\":4294967296") == .member("members"))
        #expect(try error("ams-3", String(repeating: "a", count: 1_025)) == .member("made-by"))
        #expect(try error("ams-3", String(repeating: "a", count: 16_385)) == .tooLong)
    }

    @Test("members of later versions that change nothing are ignored")
    func unknownMembers() throws {
        let text = String(decoding: try record().text, as: UTF8.self)
        let longer = text.replacing("{", with: #"{"later":[1,{"a":null}],"#)
        #expect(try FleetRecord(text: Array(longer.utf8)) == record())
    }
}

@Suite("The signature of a record") struct SignatureTests {
    private func rejection(
        _ headers: NATSHeaders, by keys: Set<NKeyPublicKey>? = nil, for expected: FleetSubject? = nil
    ) throws -> RecordRejection? {
        let (keys, expected) = (try keys ?? publishers(), try expected ?? subject())
        return #expect(throws: RecordRejection.self) {
            _ = try SignedRecord(headers).verified(by: keys, for: expected)
        }
    }

    @Test("a record of a publisher counts")
    func counts() throws {
        let signed = try #require(SignedRecord(try record(), signedBy: try seed()))
        let again = try SignedRecord(try signed.headers())
        #expect(again == signed)
        #expect(try again.verified(by: try publishers(), for: try subject()) == record())
    }

    @Test("a poisoned, unsigned or otherwise signed record is rejected")
    func attacks() throws {
        let signed = try #require(SignedRecord(try record(), signedBy: try seed()))
        let headers = try signed.headers()
        let text = try #require(headers[SignedRecord.recordHeader])
        let signature = try #require(headers[SignedRecord.signatureHeader])
        func headersWith(_ text: String?, _ signature: String?) throws -> NATSHeaders {
            var headers = NATSHeaders()
            if let text { try headers.append(SignedRecord.recordHeader, text) }
            if let signature { try headers.append(SignedRecord.signatureHeader, signature) }
            return headers
        }
        let key = try seed().publicKey
        let poisoned = text.replacing("\"number\":7", with: "\"number\":8")
        #expect(try rejection(try headersWith(poisoned, signature)) == .wrongSignature(key))
        #expect(try rejection(try headersWith(text, nil)) == .unsigned)
        #expect(try rejection(try headersWith(nil, signature)) == .noRecord)
        for bad in [key, "\(key) AAAA", "\(signature) x", "x y", "\(key)  \(signature.dropFirst(key.utf8.count + 1))"] {
            #expect(try rejection(try headersWith(text, bad)) == .unsigned)
        }
        // Another key, which no member lists; and its signature in the name of the publisher.
        let foreign = try #require(SignedRecord(try record(), signedBy: try seed(1)))
        let other = try seed(1).publicKey
        #expect(try rejection(try foreign.headers()) == .unknownPublisher(other))
        let forged = try #require(try foreign.headers()[SignedRecord.signatureHeader]).replacing(other, with: key)
        #expect(try rejection(try headersWith(text, forged)) == .wrongSignature(key))
        // Two records in one message.
        var twice = headers
        try twice.append(SignedRecord.recordHeader, poisoned)
        #expect(try rejection(twice) == .noRecord)
        // The list of publishers is empty.
        #expect(try rejection(headers, by: []) == .unknownPublisher(key))
    }

    @Test("a record of another fleet, pipeline or definition is rejected although it is signed")
    func others() throws {
        let headers = try #require(SignedRecord(try record(), signedBy: try seed())).headers()
        var expected = try subject()
        expected.fleet = "test"
        #expect(try rejection(headers, for: expected) == .otherFleet("prod"))
        expected = try subject()
        expected.pipeline = "feed"
        #expect(try rejection(headers, for: expected) == .otherPipeline("jwks"))
        expected = try subject()
        expected.fingerprint = try digest(8)
        #expect(try rejection(headers, for: expected) == .otherDefinition(try digest(9)))
    }

    @Test("a rejection says what to do, without the characters of its sender")
    func descriptions() throws {
        #expect(
            RecordRejection.unknownPublisher("U\u{1B}[2Jx").description
                == "it is signed by U?[2Jx, which is not among fleet.publishers")
        #expect(RecordRejection.malformed(.newerVersion(2)).description.contains("update it"))
    }
}

@Suite("The newest record that a member has seen") struct KnownHeadTests {
    @Test("news has content, a confirmation, or nothing new; what was missed is counted")
    func news() throws {
        var head = KnownHead()
        #expect(try head.saw(try record(1)) == .content(try record(1), gap: 0))
        #expect(try head.saw(try record(1)) == .known)
        #expect(try head.saw(try record(2)) == .confirmation(try record(2)))
        #expect(try head.saw(try record(9, content: 2)) == .content(try record(9, content: 2), gap: 6))
        #expect(head.number == 9)
    }

    @Test("a member never goes back: a replayed record and a second one of a number are rejected")
    func backwards() throws {
        var head = KnownHead(seen: 5)
        #expect(throws: RecordRejection.older(number: 4, seen: 5)) { try head.saw(try record(4)) }
        #expect(try head.saw(try record(5)) == .content(try record(5), gap: 0))
        #expect(throws: RecordRejection.conflicting(number: 5)) { try head.saw(try record(5, content: 2)) }
        _ = try head.saw(try record(.max))
        #expect(throws: RecordRejection.older(number: 6, seen: .max)) { try head.saw(try record(6)) }
        #expect(try head.saw(try record(.max)) == .known)
    }

    @Test("the longest error of a report is cut by bytes, whatever its characters are")
    func longErrors() throws {
        let graphemes = String(repeating: "e" + String(repeating: "\u{301}", count: 15), count: 200)
        for text in [graphemes, String(repeating: "\u{1}", count: 5_000), String(repeating: "ä", count: 201), "short"] {
            let report = FleetReport(copy: try digest(1), failure: .init(.rejected, try digest(2), text))
            let read = try #require(FleetReport(text: report.text))
            #expect(read.copy == report.copy && read.failure?.digest == report.failure?.digest)
            #expect(
                text.hasPrefix(read.failure?.text ?? "x")
                    || text.unicodeScalars.starts(with: read.failure?.text.unicodeScalars ?? "x".unicodeScalars))
        }
    }
}
