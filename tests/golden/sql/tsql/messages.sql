-- all
INSERT INTO [a-b].[or`der"]] 🙂] ([table], [message_id], [key], [value]) SELECT [table], [message_id], [key], [value] FROM [a-b].[b] AS [b]
