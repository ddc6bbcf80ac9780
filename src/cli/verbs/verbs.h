// The rows of the table, each from the file of its command.
#pragma once

#include "cli/command.h"

namespace tocsin::cli {

Command Submit();
Command Reserve();
Command Ack();
Command Nack();
Command Extend();

Command Get();
Command List();
Command Cancel();
Command Amend();
Command Fire();
Command Count();

Command Topics();
Command TopicGet();
Command TopicSet();
Command TopicTest();
Command TopicPause();
Command TopicResume();
Command TopicPurge();
Command TopicDrop();

Command DeadList();
Command DeadRedrive();
Command DeadPurge();

Command Stats();
Command Cluster();
Command ClockAdvance();
Command TokenCreate();
Command TokenList();
Command TokenRevoke();

Command WorkerRow();  // Worker is what it runs
Command Export();
Command Import();
Command Watch();
Command Demo();

Command JournalVerify();
Command JournalRepair();
Command Docs();

}  // namespace tocsin::cli
