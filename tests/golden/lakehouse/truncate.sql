INSERT OVERWRITE TABLE `lakehouse`.`a.b`.`or``der 🙂` SELECT * FROM `lakehouse`.`a.b`.`or``der 🙂` WHERE FALSE
