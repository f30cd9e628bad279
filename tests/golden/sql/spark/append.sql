-- all
INSERT INTO `a-b`.`or``der"] 🙂` (`a``"]`, `select`, `at's`, `clock`, `_unsent_1`, `_operation`, `_committed_at`, `_sequence`, `_unsent`) SELECT `a``"]`, `select`, `at's`, `clock`, `_unsent_1`, `_operation`, `_committed_at`, `_sequence`, `_unsent` FROM `a-b`.`b` AS `b`
