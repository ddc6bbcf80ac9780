#pragma once

#include "net_pch.h"
#include "test_pch.h"
