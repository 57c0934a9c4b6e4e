import FreshetControl
import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Time zones of the machine")
struct ZoneTests {
    @Test("the local time zone is that of the file, of the variable TZ if it is set, and UTC without either")
    func local() throws {
        let directory = try TemporaryDirectory()
        let link = directory.path + "/localtime"
        symlink("/usr/share/zoneinfo/Europe/Berlin", link)
        let zones = ZoneFiles(localFile: link, variable: nil)
        #expect(zones.rules(named: nil).name == "Europe/Berlin")
        #expect(ZoneFiles(localFile: link, variable: ":Asia/Tokyo").rules(named: nil).name == "Asia/Tokyo")
        unlink(link)
        symlink("/usr/share/zoneinfo/Asia/Tokyo", link)
        #expect(zones.rules(named: nil).name == "Europe/Berlin")
        zones.forget()
        #expect(zones.rules(named: nil).name == "Asia/Tokyo")
        unlink(link)
        zones.forget()
        #expect(zones.rules(named: nil) == .utc)
        #expect(ZoneFiles.exists("America/New_York"))
        for wrong in ["Europe/Nowhere", "../../../etc/localtime", "/etc/localtime", "tzdata.zi", ""] {
            #expect(!ZoneFiles.exists(wrong))
        }
    }

    @Test("a pipeline with calendar times has a planned run, the row time-zone and its times in the description")
    func daemon() async throws {
        let home = try Home()
        let often = "\nrefresh: {on: [], at: ['yearly UTC', '*-12-31 23:59 UTC']}\n"
        try home.configure("a", Home.printing("x", to: "a.txt") + often)
        _ = try await withDaemon(home) { client in
            _ = try client.refresh("a")
            let next = try #require(try client.pipelines(["a"]).first?.nextRun)
            #expect(next.reason == "timer")
            // Both times are in the last minute of a year or at its end.
            let event = try CalendarEvent("*-12-31 23:59 UTC")
            let due = try #require(event.next(after: WallTime.now, in: .utc)).microseconds
            #expect(abs(next.at - due) < 1_000_000 || abs(next.at - due) == 60_000_000)
            #expect(try client.descriptions(["a"]).first?.at == ["yearly UTC", "*-12-31 23:59 UTC"])
            #expect(try client.signals().contains { $0.name == "time-zone" })
            try home.configure("a", Home.printing("x", to: "a.txt") + "\nrefresh: {at: daily Europe/Nowhere}\n")
            let reloaded = try client.reload(configurationOnly: true)
            #expect(reloaded.diagnostics.contains { $0.message.contains("no time zone 'Europe/Nowhere'") })
        }
    }
}
