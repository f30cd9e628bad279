INSERT INTO `lakehouse`.`a.b`.`or``der 🙂` SELECT * FROM `lakehouse`.`a.b`.`or``der 🙂` WHERE FALSE
